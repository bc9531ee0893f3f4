/* PyTorch's own lists of what autocast casts, given to the device that the recorder pretends.
 *
 * PyTorch registers them for CUDA and other devices of its own; for a device from outside it leaves that
 * to whoever brings the device. Each list is a macro of ATen/autocast_mode.h, and each wrapper, with the
 * cache of weights, is the one that CUDA gets.
 */
#include <ATen/Functions.h>
#include <ATen/autocast_mode.h>
#include <torch/library.h>

using at::IntArrayRef, at::Scalar, at::ScalarType, at::Tensor; /* as the lists write them */

#define LOWER(...)       KERNEL_PRIVATEUSEONE(__VA_ARGS__, lower_precision_fp)
#define WIDE(...)        KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32)
#define WIDE_RESULT(...) KERNEL_PRIVATEUSEONE(__VA_ARGS__, fp32_set_opt_dtype)
#define WIDEST(...)      KERNEL_PRIVATEUSEONE(__VA_ARGS__, promote)

TORCH_LIBRARY_IMPL(aten, AutocastPrivateUse1, m) {
    AT_FORALL_LOWER_PRECISION_FP(LOWER)
    AT_FORALL_FP32(WIDE)
    AT_FORALL_FP32_SET_OPT_DTYPE(WIDE_RESULT)
    AT_FORALL_DIFFERENT_REDISPATCH_SIGNATURE(KERNEL_DIFFERENT_REDISPATCH_SIGNATURE_PRIVATEUSEONE)
    AT_FORALL_PROMOTE(WIDEST)
}

/* Every other op goes by. */
TORCH_LIBRARY_IMPL(_, AutocastPrivateUse1, m) {
    m.fallback(torch::CppFunction::makeFallthrough());
}

/* What such a wrapper does with one argument, for attention, whose kernel the recorder chooses in Python. */
static Tensor lower(const Tensor &x) {
    constexpr auto device = c10::DeviceType::PrivateUse1;
    return at::autocast::is_autocast_enabled(device)
               ? at::autocast::cached_cast(at::autocast::get_autocast_dtype(device), x, device)
               : x;
}

TORCH_LIBRARY(recorder, m) {
    m.def("lower(Tensor x) -> Tensor");
    m.impl("lower", c10::DispatchKey::CompositeImplicitAutograd, lower);
}
