"""Networks of transformers' own modules, made from a config.json with random weights and called as its Trainer calls
them: the model makes the loss of its labels, and what it returns is let go of before backward, or behind that, as in a
loop of one's own that keeps `outputs`.

There is no attention_mask: sequences are whole. Then transformers looks through the positions for several sequences in
one and, as there are none, returns nothing; tensors without memory cannot tell, so the question is answered here and
what it makes and frees (at the start of a pass, up to 33 bytes a token; the host waits for it) is left out."""

import json
import sys

import torch

import loss_in_place
from building_blocks import Shape, loss_of_shifted


IN_MEMORY = ("gemma2", "gpt_oss")  # caps or sinks: PyTorch's kernel knows neither, so transformers itself takes "eager"


def fields_of(options):
    with open(options.transformers) as file:
        fields = json.load(file)
    layers = "n_layer" if "n_layer" in fields else "num_hidden_layers"
    return {**fields, layers: options.layers or fields[layers]}


def make_shape(options):
    """What of a shape record_fsdp.py asks; the network is the config.json's."""
    fields = fields_of(options)
    longest = fields.get("max_position_embeddings") or fields.get("n_positions")
    return Shape(kind="transformers", layers=0, width=0, vocab=fields["vocab_size"], seq=options.seq or longest,
                 checkpointing=options.checkpointing, logits_held=options.logits_held or "no",
                 loss_in_place=bool(options.loss_in_place), logits_shifted=bool(options.logits_shifted), loss=options.loss or "fp32",
                 use_cache=bool(options.use_cache), cache_copied=bool(options.cache_copied))


def suppose_whole_sequences():
    masks = sys.modules.get("transformers.masking_utils")
    if masks is not None:
        masks.find_packed_sequence_indices = lambda position_ids: None


def make_network(options):
    from transformers import AutoConfig, AutoModelForCausalLM, masking_utils  # noqa: F401

    suppose_whole_sequences()
    fields = fields_of(options)
    config = AutoConfig.for_model(fields.pop("model_type"), **fields)
    config.use_cache = bool(options.use_cache)  # Trainer has it so since 5.0, and before leaves what the config says
    if options.use_cache and not options.cache_copied:
        keep_keys_as_they_are()
    attention = "eager" if config.model_type in IN_MEMORY else "sdpa"
    network = AutoModelForCausalLM.from_config(config, attn_implementation=attention)
    network.block_classes = tuple({type(m) for m in network.modules() if type(m).__name__ in network._no_split_modules})
    if options.checkpointing == "inside":
        network.gradient_checkpointing_enable({"use_reentrant": False})
    elif options.checkpointing == "outside":
        raise SystemExit("transformers checkpoints what is inside of a block's hooks; give --checkpointing inside")
    if options.logits_shifted:
        make_loss_as_before(network, options)
    elif options.loss_in_place:
        torch.nn.functional.cross_entropy = loss_in_place.of_transformers  # as liger_kernel's monkey_patch.py does
    return network.train()


def keep_keys_as_they_are():
    """As DynamicCache did from 4.36 to 4.55, and the tuples before: the first keys and values that a layer gets are what it holds
    and gives. Since 4.56 it joins them to none, which copies."""
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    def update(self, keys, values, *_, **__):
        self.keys, self.values, self.is_initialized = keys, values, True
        return keys, values

    DynamicLayer.update = DynamicSlidingWindowLayer.update = update


def make_loss_as_before(network, options):
    """As transformers 4 made it until 4.48, --loss: of logits as they are ("ops": Llama's until 4.28), of logits that the
    model made fp32 ("fp32-logits": until 4.45) or of a copy in fp32 ("fp32")."""
    shape = make_shape(options)
    if shape.loss == "fp32-logits":
        network.lm_head.register_forward_hook(lambda module, inputs, logits: logits.float())
    network.loss_function = lambda logits, labels, *_, **__: loss_of_shifted(logits, labels, shape)


def header(options):
    import transformers

    return {"transformers": transformers.__version__, "config": fields_of(options)}


def outputs_of(model, tokens, targets):
    return model(input_ids=tokens, labels=targets)
