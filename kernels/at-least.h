/* kernels/at-least.h - a number lifted to a least one, as torch.clamp() does, on the host and on a
 * GPU: NaN is no less than anything, and stays.
 */
#pragma once

#include "kernels/everywhere.h"

KERNEL_EVERYWHERE static inline float kernel_at_least(float x, float least) {
    return x < least ? least : x;
}
