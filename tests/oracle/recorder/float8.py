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
    if options.float8 == "mxfp8":
        import mxfp8
        mxfp8.convert(network, is_chosen)
        return
    if options.float8_gather:
        if options.float8 != "tensorwise":
            raise SystemExit("--float8-gather is of --float8 tensorwise")
        config = Float8LinearConfig(enable_fsdp_float8_all_gather=True)
    else:
        config = Float8LinearConfig.from_recipe_name(options.float8)
    convert_to_float8_training(network, module_filter_fn=is_chosen, config=config)


def numbers_of(tensor):
    """Those of torchao's tensors of several, which have no memory themselves."""
    if not type(tensor).__module__.startswith("torchao."):
        return tensor
    return next(getattr(tensor, name) for name in ("_tensor", "_data", "codes") if hasattr(tensor, name))


def after_step(model, options):
    """What torchtitan calls behind each optimizer step (precompute_float8_dynamic_scale_for_fsdp)."""
    if options.float8_gather == "precomputed":
        from torchao.float8 import precompute_float8_dynamic_scale_for_fsdp
        precompute_float8_dynamic_scale_for_fsdp(model)
