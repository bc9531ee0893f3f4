"""Linear layers in MXFP8: torchao's MXFP8TrainingOpConfig, as torchtitan's converter uses it on Blackwell.

torchao defines its kernels where it finds such a GPU, when it is imported; here it finds one. The cast by columns is of
CUDA and does nothing; it allocates what torchao says that it does. A network on a CPU gets torchao's emulation."""

import types

import torch
import torch.utils._triton
import torchao.utils
import triton
from triton.backends.compiler import GPUTarget


def find_blackwell():
    """Until torchao's kernels are defined."""
    kept = torch.cuda.is_available, torch.utils._triton.has_triton
    torch.cuda.is_available = torch.utils._triton.has_triton = lambda: True
    told = torchao.utils.is_sm_at_least_100, torchao.utils.is_cuda_version_at_least
    torchao.utils.is_sm_at_least_100 = lambda: True
    torchao.utils.is_cuda_version_at_least = lambda major, minor: True
    from torchao.prototype.mx_formats import kernels
    torch.cuda.is_available, torch.utils._triton.has_triton = kept
    torchao.utils.is_sm_at_least_100, torchao.utils.is_cuda_version_at_least = told
    blackwell = GPUTarget("cuda", 100, 32)  # whose reading of a kernel tells which tensors it writes
    triton.runtime.driver.set_active(types.SimpleNamespace(get_current_target=lambda: blackwell))
    torch.library.impl("torchao::mxfp8_quantize", "PrivateUse1", kernels._fake_mxfp8_quantize)


def convert(network, is_chosen):
    is_emulated = next(network.parameters()).device.type == "cpu"
    if not is_emulated:
        find_blackwell()
    from torchao.prototype.moe_training.config import MXFP8TrainingOpConfig, MXFP8TrainingRecipe
    from torchao.quantization import quantize_
    recipe = MXFP8TrainingRecipe.MXFP8_EMULATED_RCEIL if is_emulated else MXFP8TrainingRecipe.MXFP8_RCEIL
    quantize_(network, MXFP8TrainingOpConfig.from_recipe(recipe), filter_fn=is_chosen)
