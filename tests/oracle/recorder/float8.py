"""Linear layers in float8: torchao.float8's own converter, on the layers of blocks.

As torchtitan's filter does, a layer with a side that 16 does not divide stays as it is, and so does the head."""

from torch import nn


def convert(network, options):
    if not options.float8:
        return
    from torchao.float8 import Float8LinearConfig, convert_to_float8_training
    blocks = [m for m in network.modules() if isinstance(m, network.block_classes)]
    inside = {id(m) for block in blocks for m in block.modules()}

    def is_chosen(module, name):
        return (isinstance(module, nn.Linear) and id(module) in inside
                and module.in_features % 16 == 0 and module.out_features % 16 == 0)
    config = Float8LinearConfig.from_recipe_name(options.float8)
    convert_to_float8_training(network, module_filter_fn=is_chosen, config=config)
