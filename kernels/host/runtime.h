/* kernels/host/runtime.h - what holds for all host kernels, and how they are set up.
 *
 * Conventions of this folder. Outputs come first, then inputs, then sizes, then scalars. Arrays are
 * row-major and contiguous unless a stride is given; strides and leading dimensions count elements
 * (in copy.h: bytes). A size of zero is allowed and does nothing. An output is written in full and
 * never read first, unless the comment says "in place" or "accumulates"; where "may alias" is said,
 * an output may be exactly one of the inputs (never a part of it), otherwise they must not overlap.
 * The suffix names how elements are stored: _f32 computes in float and adds long sums in double.
 *
 * No kernel allocates, locks, prints or keeps state; scratch is at most 160 KiB of stack. So any
 * number of threads may call them at once on different data. Results do not depend on the machine's
 * vector width except in the last bits of sums and matrix products (random.h: not even there).
 *
 * "Bound" in a comment names what limits a kernel on large arrays: memory (how many bytes it moves
 * an element) or arithmetic (how many operations).
 */
#pragma once
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Sets how many threads a matrix product may use, for the whole process. One is right where several
 * ranks share a machine. Everything else here is single-threaded. No effect (false) if the BLAS in
 * use has no such switch. */
bool kernel_set_threads(int threads);

/* The instruction set the vector loops were chosen for, for headers of reports: "x86-64",
 * "x86-64-v3" (AVX2, FMA), "x86-64-v4" (AVX-512), or "generic" elsewhere. */
const char *kernel_isa_name(void);

/* The BLAS behind the matrix products, as it describes itself. */
const char *kernel_blas_name(void);

/* The name of the kernels that such a BLAS should be told to multiply with, if it took its oldest
 * ones although the processor can do more: an OpenBLAS that is older than the processor does not
 * know it. It looks for the name as it is loaded, in OPENBLAS_CORETYPE. NULL: all is well. */
const char *kernel_blas_better_core(void);
