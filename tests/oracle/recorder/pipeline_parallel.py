"""Stages that share the layers, one or several a rank, as torch.distributed.pipelining plays them.  A rank's recording is of
its stages alone: whoever sends to it or receives from it is pretended."""

import types

import torch
from torch import nn

import tensor_parallel


def layers_of_stages(layers, stages, split):
    """How many blocks each stage has: as many, the first ones more; or as torchtitan has it, where the embedding counts as
    a block of the first stage, and norm and head as one of the last."""
    whole = layers + (2 if split == "torchtitan" else 0)
    shares = [whole // stages + (stage < whole % stages) for stage in range(stages)]
    if split == "torchtitan":
        shares[0] -= 1
        shares[-1] -= 1
    return shares


def count_stages(options):
    return options.pipeline * options.pipeline_stages


def stages_of(options):
    """This rank's, in order."""
    first = options.rank // (options.world // options.pipeline)
    return range(first, count_stages(options), options.pipeline)


def cut(network, stage, options):
    """What torchtitan leaves of a network: its stage's layers by their names, all else gone. It has no GPT; one is cut likewise,
    its positions where its tokens are."""
    kind = network.shape.kind
    if kind not in FORWARDS:
        raise SystemExit("--pipeline is of llama and gpt alone")
    if network.shape.tied:
        raise SystemExit("--pipeline: a head that is the embedding would be on two stages; torchtitan refuses it, too")
    shares = layers_of_stages(len(network.layers), count_stages(options), options.pipeline_split)
    first = sum(shares[:stage])
    own = range(first, first + shares[stage])
    network.layers = nn.ModuleDict({str(i): network.layers[i] for i in own})
    names = tensor_parallel.LAYERS[kind]
    for gone in (names.tables if stage > 0 else ()) + ((names.norm, "head") if stage < count_stages(options) - 1 else ()):
        setattr(network, gone, None)
    network.forward = types.MethodType(FORWARDS[kind], network)


def _forward_of_llama(network, x):
    x = x if network.embed is None else network.embed(x)
    seq = network.shape.seq  # of which x has a part where ranks share layers
    if network.shape.rope == "complex":
        cos = sin = network.turns[:seq]
    else:
        cos, sin = (t[:seq].to(x.dtype) for t in (network.cos, network.sin))
    for layer in network.layers.values():
        x = network.run(layer, x, cos, sin)
    return x if network.head is None else network.logits_of(x)


def _forward_of_gpt(network, x):
    if network.wte is not None:
        positions = torch.arange(x.size(1), device=x.device).unsqueeze(0)
        x = network.dropped(network.wte(x) + network.wpe(positions))
    for layer in network.layers.values():
        x = network.run(layer, x)
    return x if network.head is None else network.head(network.ln_f(x))


FORWARDS = {"llama": _forward_of_llama, "gpt": _forward_of_gpt}


def _tell_phases(stage, recorder):
    """Each chunk's, and what comes behind it."""
    def told(method, phase):
        def chunk(*args, **kwargs):
            recorder.phase = phase
            return method(*args, **kwargs)
        return chunk
    stage.forward_one_chunk = told(stage.forward_one_chunk, "forward")
    stage.backward_one_chunk = told(stage.backward_one_chunk, "backward")


def _tell_what_is_sent(recorder):
    """What a schedule sends or receives is noted as one: what goes to the neighbours by itself, or an exchange. NCCL's work
    holds its tensors (ProcessGroupNCCL.cpp, WorkNCCL::outputs_), and a schedule those whom it waits for later."""
    import torch.distributed as dist
    from torch.distributed.pipelining import schedules

    class Works(list):
        pass

    batched = schedules._batch_p2p

    def batch_p2p(ops, desc=None):
        sent = [op.tensor for op in ops if op.op is dist.isend]
        received = [op.tensor for op in ops if op.op is dist.irecv]
        recorder.paused = True
        works = Works(batched(ops, desc))
        recorder.paused = False
        if ops:
            kind = "exchange" if sent and received else "send" if sent else "receive"
            recorder.note_collective(kind, ops[0].group, received or sent, sent or received, True, False)
            works.tensors = sent
        return works

    schedules._batch_p2p = batch_p2p


def _label_received(stage, recorder):
    """What a stage is given is kept for its backward."""
    prepare = stage._setup_forward_recv_info

    def label(*args):
        prepare(*args)
        for infos in stage.args_recv_info.values():
            for info in infos:
                recorder.label(info.buffer, "activation")
    stage._setup_forward_recv_info = label


def make_schedule(networks, options, shape, mesh, device, loss_of, recorder):
    from torch.distributed.pipelining import (PipelineStage, Schedule1F1B, ScheduleGPipe, ScheduleInterleaved1F1B,
                                              ScheduleLoopedBFS)
    from torch.distributed.pipelining import schedules
    from torch.distributed.pipelining._utils import InferenceMode

    import parallel

    def without_asking(schedule, stages, has_backward, p2p_done):
        for stage in stages:
            stage._inference_mode = InferenceMode.STATIC

    schedules._PipelineSchedule._warmup_p2p = without_asking
    last = count_stages(options) - 1
    computes = parallel.DTYPES[options.param_dtype or options.model_dtype]
    cut_among = 1 if options.sequence_parallel is False else options.tensor
    with torch.device("meta"):
        tokens = torch.empty(options.batch, shape.seq, dtype=torch.int64)
        hidden = torch.empty(options.batch, shape.seq // cut_among, shape.width, dtype=computes, requires_grad=True)
        logits = torch.empty(options.batch, shape.seq, shape.vocab, dtype=computes, requires_grad=True)
    of_rank = [PipelineStage(network, stage, last + 1, device, group=mesh["pipeline"].get_group(),
                             input_args=hidden if stage else tokens, output_args=logits if stage == last else hidden)
               for network, stage in zip(networks, stages_of(options))]
    for stage in of_rank:
        _tell_phases(stage, recorder)
        _label_received(stage, recorder)
    _tell_what_is_sent(recorder)
    of_one = {"gpipe": ScheduleGPipe, "1f1b": Schedule1F1B}
    of_several = {"interleaved-1f1b": ScheduleInterleaved1F1B, "looped-bfs": ScheduleLoopedBFS}
    kind = (of_one | of_several)[options.pipeline_schedule]
    return kind(of_rank if options.pipeline_schedule in of_several else of_rank[0], options.accumulate, loss_fn=loss_of, scale_grads=False)


def play(schedule, options, batch):
    """The whole step's forward and backward, of one batch of all microbatches."""
    tokens, targets = batch
    own, last = stages_of(options), count_stages(options) - 1
    schedule.step(*([tokens] if 0 in own else []), target=targets if last in own else None, return_outputs=False)


def clip(models, limit, group):
    """As torchtitan clips (torchtitan/distributed/utils.py, clip_grad_norm_): the norm of a rank's gradients, whole; its
    square added up over the stages, in place; by its root the gradients are scaled."""
    import torch.distributed as dist

    with torch.no_grad():
        parameters = [p for model in models for p in model.parameters()]
        norm = nn.utils.get_total_norm([p.grad for p in parameters if p.grad is not None])
        if hasattr(norm, "full_tensor"):
            norm = norm.full_tensor()
        norm.pow_(2)
        dist.all_reduce(norm, group=group)
        norm.pow_(0.5)
        nn.utils.clip_grads_with_norm_(parameters, limit, norm)
