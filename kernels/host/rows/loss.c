/* kernels/host/rows/loss.c - see loss.h. */
#include "kernels/host/rows/loss.h"
#include "kernels/host/vector.h"
#include <math.h>

KERNEL(void, kernel_softmax_forward_f32)(float *y, const float *x, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        const float *x_row = x + r * width;
        float *y_row = y + r * width;
        float largest = max_f32(x_row, width, -INFINITY);
        double total = 0.0;

        KERNEL_SUM(total)
        for (size_t i = 0; i < width; i++) {
            float e = exp_f32(x_row[i] - largest);

            y_row[i] = e;
            total += (double)e;
        }

        float share = (float)(1.0 / total);

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            y_row[i] *= share;
        }
    }
}

KERNEL(void, kernel_softmax_backward_f32)
(float *dx, const float *dy, const float *y, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        const float *dy_row = dy + r * width;
        const float *y_row = y + r * width;
        float *dx_row = dx + r * width;
        double dot = 0.0;

        KERNEL_SUM(dot)
        for (size_t i = 0; i < width; i++) {
            dot += (double)dy_row[i] * (double)y_row[i];
        }

        float common = (float)dot;

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            dx_row[i] = y_row[i] * (dy_row[i] - common);
        }
    }
}

KERNEL(void, kernel_log_softmax_forward_f32)(float *y, const float *x, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        const float *x_row = x + r * width;
        float *y_row = y + r * width;
        float largest = max_f32(x_row, width, -INFINITY);
        double total = 0.0;

        KERNEL_SUM(total)
        for (size_t i = 0; i < width; i++) {
            total += (double)exp_f32(x_row[i] - largest);
        }

        float log_total = (float)log(total);

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            y_row[i] = x_row[i] - largest - log_total;
        }
    }
}

KERNEL(void, kernel_log_softmax_backward_f32)
(float *dx, const float *dy, const float *y, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        const float *dy_row = dy + r * width;
        const float *y_row = y + r * width;
        float *dx_row = dx + r * width;
        double total = 0.0;

        KERNEL_SUM(total)
        for (size_t i = 0; i < width; i++) {
            total += (double)dy_row[i];
        }

        float common = (float)total;

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            dx_row[i] = dy_row[i] - exp_f32(y_row[i]) * common;
        }
    }
}

KERNEL(bool, kernel_nll_loss_forward_f32)
(float *loss, float *total_weight, const float *logp, const int64_t *target, size_t rows,
 size_t classes, int64_t ignore_index) {
    double total = 0.0;
    size_t count = 0;

    for (size_t r = 0; r < rows; r++) {
        if (target[r] == ignore_index) {
            continue;
        }
        if (target[r] < 0 || (uint64_t)target[r] >= classes) {
            return false;
        }
        total -= (double)logp[r * classes + (size_t)target[r]];
        count++;
    }
    loss[0] = count > 0 ? (float)(total / (double)count) : NAN;
    total_weight[0] = (float)count;
    return true;
}

KERNEL(bool, kernel_nll_loss_backward_f32)
(float *dlogp, const float *dloss, const int64_t *target, const float *total_weight, size_t rows,
 size_t classes, int64_t ignore_index) {
    float share = -dloss[0] / total_weight[0];

    for (size_t r = 0; r < rows; r++) {
        float *row = dlogp + r * classes;

        if (classes > 0) {
            memset(row, 0, classes * sizeof *row);
        }
        if (target[r] == ignore_index) {
            continue;
        }
        if (target[r] < 0 || (uint64_t)target[r] >= classes) {
            return false;
        }
        row[target[r]] = share;
    }
    return true;
}

KERNEL(bool, kernel_cross_entropy_forward_f32)
(float *loss, float *total_weight, float *lse, const float *logits, const int64_t *target,
 size_t rows, size_t classes) {
    double mean = 0.0;

    for (size_t r = 0; r < rows; r++) {
        const float *row = logits + r * classes;
        float largest = max_f32(row, classes, -INFINITY);
        double total = 0.0;

        if (target[r] < 0 || (uint64_t)target[r] >= classes) {
            return false;
        }
        KERNEL_SUM(total)
        for (size_t i = 0; i < classes; i++) {
            total += (double)exp_f32(row[i] - largest);
        }
        double sum = (double)largest + log(total);

        lse[r] = (float)sum;
        mean += (sum - (double)row[target[r]]) / (double)rows;
    }
    loss[0] = (float)mean;
    total_weight[0] = (float)rows;
    return true;
}

KERNEL(bool, kernel_cross_entropy_backward_f32)
(float *logits, const float *dloss, const int64_t *target, const float *total_weight,
 const float *lse, size_t rows, size_t classes) {
    float share = dloss[0] / total_weight[0];

    for (size_t r = 0; r < rows; r++) {
        float *row = logits + r * classes, below = lse[r];

        if (target[r] < 0 || (uint64_t)target[r] >= classes) {
            return false;
        }
        KERNEL_LOOP
        for (size_t i = 0; i < classes; i++) {
            row[i] = exp_f32(row[i] - below) * share;
        }
        row[target[r]] -= share;
    }
    return true;
}

static bool is_class(int64_t target, size_t classes) {
    return target >= 0 && (uint64_t)target < classes;
}

KERNEL(bool, kernel_compiled_loss_forward_f32)
(float *loss, float *total_weight, float *most, float *log_sum, const float *logits,
 const int64_t *target, size_t rows, size_t classes, int64_t ignore_index) {
    double total = 0.0;
    size_t count = 0;

    for (size_t r = 0; r < rows; r++) {
        const float *row = logits + r * classes;
        float largest = max_f32(row, classes, -INFINITY);
        double sum = 0.0;

        KERNEL_SUM(sum)
        for (size_t i = 0; i < classes; i++) {
            sum += (double)exp_f32(row[i] - largest);
        }
        most[r] = largest;
        log_sum[r] = (float)log(sum);
        if (target[r] == ignore_index) {
            continue;
        }
        if (!is_class(target[r], classes)) {
            return false;
        }
        total += (double)largest + log(sum) - (double)row[target[r]];
        count++;
    }
    loss[0] = count > 0 ? (float)(total / (double)count) : NAN;
    total_weight[0] = (float)count;
    return true;
}

KERNEL(bool, kernel_compiled_loss_backward_f32)
(float *dlogits, const float *logits, const float *dloss, const int64_t *target,
 const float *total_weight, const float *most, const float *log_sum, size_t rows, size_t classes,
 int64_t ignore_index) {
    for (size_t r = 0; r < rows; r++) {
        const float *x = logits + r * classes;
        float *dx = dlogits + r * classes, largest = most[r], below = log_sum[r];
        bool counts = target[r] != ignore_index;
        float share = counts ? dloss[0] / total_weight[0] : 0.0f;

        if (counts && !is_class(target[r], classes)) {
            return false;
        }
        KERNEL_LOOP
        for (size_t i = 0; i < classes; i++) {
            dx[i] = exp_f32(x[i] - largest - below) * share;
        }
        if (counts) {
            dx[target[r]] -= share;
        }
    }
    return true;
}

/* ---- of some columns ------------------------------------------------------------------------ */

KERNEL(void, kernel_largest_f32)(float *most, const float *x, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        most[r] = max_f32(x + r * width, width, -INFINITY);
    }
}

KERNEL(void, kernel_sum_of_exps_f32)
(float *sum, const float *x, const float *most, size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        const float *row = x + r * width;
        float largest = most[r];
        double total = 0.0;

        KERNEL_SUM(total)
        for (size_t i = 0; i < width; i++) {
            total += (double)exp_f32(row[i] - largest);
        }
        sum[r] = (float)total;
    }
}

KERNEL(bool, kernel_pick_targets_f32)
(float *picked, uint8_t *counted, float *less, const int64_t *target, const float *logits,
 const float *most, const float *sum, size_t rows, size_t width, int64_t first, int64_t all) {
    for (size_t r = 0; r < rows; r++) {
        if (target[r] >= all) {
            return false;
        }
        bool is_here = target[r] >= first && target[r] - first < (int64_t)width;

        counted[r] = target[r] >= 0;
        picked[r] = 0;
        if (counted[r] && is_here) {
            size_t at = r * width + (size_t)(target[r] - first);

            picked[r] = logits[at] - most[r] - (float)log((double)sum[r]);
            less[at] = -1;
        }
    }
    return true;
}

KERNEL(void, kernel_mean_picked_f32)
(float *loss, float *total, const int64_t *target, const float *picked, size_t rows) {
    double sum = 0.0;
    size_t count = 0;

    for (size_t r = 0; r < rows; r++) {
        sum -= target[r] >= 0 ? (double)picked[r] : 0;
        count += target[r] >= 0;
    }
    loss[0] = count > 0 ? (float)(sum / (double)count) : NAN;
    total[0] = (float)count;
}

KERNEL(void, kernel_add_softmax_f32)
(float *y, const float *less, const float *x, const float *most, const float *sum, size_t rows,
 size_t width) {
    for (size_t r = 0; r < rows; r++) {
        const float *less_row = less + r * width;
        const float *x_row = x + r * width;
        float *y_row = y + r * width;
        float largest = most[r], below = (float)log((double)sum[r]);

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            y_row[i] = less_row[i] + exp_f32(x_row[i] - largest - below);
        }
    }
}

KERNEL(void, kernel_scale_counted_f32)
(float *dx, const float *y, const uint8_t *counted, const float *dloss, const float *total,
 size_t rows, size_t width) {
    for (size_t r = 0; r < rows; r++) {
        const float *y_row = y + r * width;
        float *dx_row = dx + r * width, share = counted[r] ? dloss[0] / total[0] : 0;

        KERNEL_LOOP
        for (size_t i = 0; i < width; i++) {
            dx_row[i] = y_row[i] * share;
        }
    }
}
