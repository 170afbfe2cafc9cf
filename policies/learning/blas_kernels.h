#pragma once

namespace tierpilot {

// BLIS 0.9 knows AMD processors up to family 19h (Zen 4) and computes with its generic C kernels on
// newer ones: a training batch takes 2.5 times as long. Names kernels that such a processor can run
// in BLIS_ARCH_TYPE, unless that is set. Without effect on other BLAS libraries, and after the
// first BLAS call of the process. Changes the environment: call before threads that read it are
// started.
void select_blas_kernels();

}  // namespace tierpilot
