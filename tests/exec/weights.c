/* Weight files: what is written is read again, in every dtype; whatever else is refused, with the
 * file and the tensor named, and never read beyond its end. */
#include "exec/files/weights.h"

#include <glib/gstdio.h>
#include <string.h>

#include "exec/error.h"
#include "exec/files/data.h"
#include "tests/plan/plans.h"

#define NETWORK "[network]\nfamily=gpt\nlayers=1\nwidth=8\nheads=2\nvocab=5\nseq=4\n"

typedef struct {
    char *folder, *path;
} Place;

static Place begin(void) {
    Place place = {g_dir_make_tmp("foreshard-test-XXXXXX", NULL), NULL};
    place.path = g_build_filename(place.folder, "w.safetensors", NULL);
    return place;
}

static void end(Place *place) {
    g_unlink(place->path);
    g_assert_cmpint(g_rmdir(place->folder), ==, 0); /* nothing was left aside */
    g_free(place->folder);
    g_free(place->path);
}

/* Whole numbers that every dtype holds: parameter and element. */
static float number(uint32_t parameter, uint64_t element) {
    return (float)((parameter * 31 + element) % 251) - 125;
}

/* Written as two ranks would: the one makes the file, and each puts every other element. */
static void write_file(const Plan *plan, const char *path) {
    g_autoptr(GError) error = NULL;
    g_unlink(path);
    g_autoptr(ExecWeightsFile) made = exec_weights_make(path, plan, &error);
    g_assert_no_error(error);
    g_autoptr(ExecWeightsFile) joined = exec_weights_join(exec_weights_aside(made), plan, &error);
    g_assert_no_error(error);
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        for (uint64_t e = 0; e < plan->parameters[p].elements; e++) {
            float x = number(p, e);
            g_assert_true(exec_weights_put(e % 2 ? made : joined, p, e, 1, &x, PLAN_FP32, &error));
        }
    }
    g_assert_false(g_file_test(path, G_FILE_TEST_EXISTS));
    g_assert_true(exec_weights_name(made, &error));
}

/* What others write need not have blanks at its header's end. */
static void lengthen_header(const char *path) {
    g_autofree char *content = NULL;
    gsize size;
    uint64_t length;
    g_assert_true(g_file_get_contents(path, &content, &size, NULL));
    memcpy(&length, content, sizeof length);
    g_autoptr(GString) longer = g_string_new_len(content, (gssize)size);
    g_string_insert_c(longer, (gssize)(sizeof length + length), ' ');
    length++;
    memcpy(longer->str, &length, sizeof length);
    g_assert_true(g_file_set_contents(path, longer->str, (gssize)longer->len, NULL));
}

static void expect_numbers(const char *path, const Plan *plan) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ExecWeights) weights = exec_weights_open(path, plan, &error);
    g_assert_no_error(error);
    for (uint32_t p = 0; p < plan->n_parameters; p++) {
        uint64_t n = plan->parameters[p].elements;
        g_autofree float *got = g_new(float, n);
        exec_weights_get(weights, p, 0, n, got);
        exec_weights_get(weights, p, n / 2, n - n / 2, got + n / 2); /* a part, from its middle */
        for (uint64_t e = 0; e < n; e++) {
            g_assert_cmpfloat(got[e], ==, number(p, e));
        }
    }
}

static void round_trip(gconstpointer words) {
    g_autoptr(Plan) plan = test_plan(NETWORK, words);
    Place place = begin();
    write_file(plan, place.path);
    expect_numbers(place.path, plan);
    lengthen_header(place.path); /* numbers now begin at an odd byte (the sanitizers watch) */
    expect_numbers(place.path, plan);
    end(&place);
}

/* What never got its name is gone, and what had it before stays. */
static void half_written_files_go(void) {
    g_autoptr(Plan) plan = test_plan(NETWORK, "ranks=1");
    g_autoptr(GError) error = NULL;
    g_autofree char *content = NULL;
    Place place = begin();
    g_assert_true(g_file_set_contents(place.path, "a good one", -1, NULL));
    exec_weights_close(exec_weights_make(place.path, plan, &error));
    g_assert_no_error(error);
    g_assert_true(g_file_get_contents(place.path, &content, NULL, NULL));
    g_assert_cmpstr(content, ==, "a good one");
    end(&place);
}

/* Two runs that save to one file at once: each writes its own, and what is there is one of them. */
static void two_at_once(void) {
    g_autoptr(Plan) plan = test_plan(NETWORK, "ranks=1");
    g_autoptr(GError) error = NULL;
    Place place = begin();
    ExecWeightsFile *files[2];
    for (unsigned f = 0; f < 2; f++) {
        files[f] = exec_weights_make(place.path, plan, &error);
        g_assert_no_error(error);
    }
    for (unsigned f = 0; f < 2; f++) {
        float value = f ? 2 : 1;
        for (uint32_t p = 0; p < plan->n_parameters; p++) {
            for (uint64_t e = 0; e < plan->parameters[p].elements; e++) {
                g_assert_true(exec_weights_put(files[f], p, e, 1, &value, PLAN_FP32, &error));
            }
        }
    }
    for (unsigned f = 0; f < 2; f++) {
        float got[2];
        g_assert_true(exec_weights_name(files[f], &error));
        exec_weights_close(files[f]);
        g_autoptr(ExecWeights) weights = exec_weights_open(place.path, plan, &error);
        g_assert_no_error(error);
        exec_weights_get(weights, 0, 0, 2, got);
        g_assert_cmpfloat(got[0], ==, f ? 2 : 1);
        g_assert_cmpfloat(got[1], ==, f ? 2 : 1);
    }
    end(&place);
}

static void expect_refusal(const Plan *plan, const char *path, const char *why) {
    g_autoptr(GError) error = NULL;
    g_autoptr(ExecWeights) weights = exec_weights_open(path, plan, &error);
    g_assert_null(weights);
    g_assert_error(error, EXEC_ERROR, EXEC_ERROR_INPUT);
    g_test_message("%s", error->message);
    g_assert_nonnull(strstr(error->message, why));
    g_assert_nonnull(strstr(error->message, "w.safetensors"));
}

static void others_are_refused(void) {
    g_autoptr(Plan) plan = test_plan(NETWORK, "ranks=1");
    g_autoptr(Plan) deeper =
        test_plan("[network]\nfamily=gpt\nlayers=2\nwidth=8\nheads=2\nvocab=5\nseq=4\n", "ranks=1");
    g_autoptr(Plan) wider = test_plan(
        "[network]\nfamily=gpt\nlayers=1\nwidth=10\nheads=2\nvocab=5\nseq=4\n", "ranks=1");
    Place place = begin();
    expect_refusal(plan, place.path, "No such file");
    write_file(plan, place.path);
    expect_refusal(deeper, place.path, "has no tensor layers.1.");
    expect_refusal(wider, place.path, "another shape");
    write_file(deeper, place.path);
    expect_refusal(plan, place.path, "is none of the network's");

    g_autofree char *content = NULL;
    gsize length;
    write_file(plan, place.path);
    g_assert_true(g_file_get_contents(place.path, &content, &length, NULL));
    g_assert_true(g_file_set_contents(place.path, content, (gssize)length - 1, NULL));
    expect_refusal(plan, place.path, "cut short");
    g_assert_true(g_file_set_contents(place.path, content, 100, NULL));
    expect_refusal(plan, place.path, "cut short");
    g_assert_true(g_file_set_contents(place.path, "foreshard-plan 1", -1, NULL));
    expect_refusal(plan, place.path, "is not a safetensors file");
    end(&place);
}

/* Brackets within brackets, so many that reading them would exhaust the stack; in a name they are
 * but letters. */
static void deep_headers_are_refused(void) {
    g_autoptr(Plan) plan = test_plan(NETWORK, "ranks=1");
    Place place = begin();
    for (unsigned in_name = 0; in_name < 2; in_name++) {
        g_autofree char *brackets = g_strnfill(in_name ? 1000 : 1000000, '[');
        g_autofree char *header =
            g_strdup_printf(in_name ? "{\"\\\"%s\": {}}" : "{\"a\": %s", brackets);
        g_autoptr(GString) file = g_string_new(NULL);
        uint64_t length = GUINT64_TO_LE(strlen(header));
        g_string_append_len(file, (const char *)&length, sizeof length);
        g_string_append(file, header);
        g_assert_true(g_file_set_contents(place.path, file->str, (gssize)file->len, NULL));
        expect_refusal(plan, place.path,
                       in_name ? "is none of the network's" : "stand in one another");
    }
    end(&place);
}

/* A changed byte of the header is noticed, or changes nothing that matters (a blank); what is then
 * read lies within the file (the sanitizers watch). */
static void damaged_headers_are_safe(void) {
    g_autoptr(Plan) plan = test_plan(NETWORK, "ranks=1");
    g_autoptr(GRand) rand = g_rand_new_with_seed(7);
    g_autofree char *content = NULL;
    gsize length;
    uint64_t header;
    unsigned n_refused = 0;
    Place place = begin();
    write_file(plan, place.path);
    g_assert_true(g_file_get_contents(place.path, &content, &length, NULL));
    memcpy(&header, content, sizeof header);
    for (unsigned i = 0; i < 2000; i++) {
        g_autofree char *copy = g_memdup2(content, length);
        copy[g_rand_int_range(rand, 0, (gint32)(sizeof header + header))] =
            (char)g_rand_int_range(rand, 0, 256);
        g_assert_true(g_file_set_contents(place.path, copy, (gssize)length, NULL));
        g_autoptr(ExecWeights) weights = exec_weights_open(place.path, plan, NULL);
        n_refused += !weights;
        for (uint32_t p = 0; weights && p < plan->n_parameters; p++) {
            g_autofree float *got = g_new(float, plan->parameters[p].elements);
            exec_weights_get(weights, p, 0, plan->parameters[p].elements, got);
        }
    }
    g_test_message("%u of 2000 damaged headers were refused", n_refused);
    g_assert_cmpuint(n_refused, >, 1000);
    end(&place);
}

/* Sample s is tokens s n to s n + n; after the last whole sample the first follows. */
static void data_files(gconstpointer words) {
    unsigned token_bytes = GPOINTER_TO_UINT(words);
    Place place = begin();
    uint8_t bytes[46];
    for (unsigned i = 0; i < sizeof bytes; i++) {
        bytes[i] = token_bytes == 2 && i % 2 ? 0 : (uint8_t)(i / token_bytes);
    }
    gsize n_bytes = token_bytes == 1 ? 23 : 46; /* 23 tokens: 4 samples of 5, and some over */
    g_assert_true(g_file_set_contents(place.path, (const char *)bytes, (gssize)n_bytes, NULL));
    g_autoptr(GError) error = NULL;
    g_autoptr(ExecData) data = exec_data_open(place.path, token_bytes, &error);
    g_assert_no_error(error);
    g_assert_true(exec_data_fits(data, 5, 100, &error));
    for (uint64_t sample = 0; sample < 9; sample++) {
        int64_t x[5], y[5];
        g_assert_true(exec_data_file_tokens(data, x, y, 5, 23, sample, &error));
        for (unsigned i = 0; i < 5; i++) {
            g_assert_cmpint(x[i], ==, (int64_t)(sample % 4 * 5 + i));
            g_assert_cmpint(y[i], ==, x[i] + 1);
        }
    }
    int64_t x[5], y[5];
    g_assert_false(exec_data_file_tokens(data, x, y, 5, 19, 3, &error));
    g_assert_nonnull(strstr(error->message, "token 19 is 19"));
    g_clear_error(&error);
    g_assert_false(exec_data_fits(data, 23, 100, &error));
    g_assert_nonnull(strstr(error->message, "fewer than"));
    g_clear_error(&error);
    g_assert_false(exec_data_fits(data, 5, 0, &error));
    g_assert_nonnull(strstr(error->message, "vectors"));
    end(&place);
}

int main(int argc, char **argv) {
    g_test_init(&argc, &argv, NULL);
    g_test_add_data_func("/exec/weights/round trip", "ranks=2", round_trip);
    g_test_add_data_func("/exec/weights/round trip in bf16", "ranks=2 model_dtype=bf16",
                         round_trip);
    g_test_add_data_func("/exec/weights/round trip in fp16", "ranks=2 model_dtype=fp16",
                         round_trip);
    g_test_add_func("/exec/weights/half-written files go", half_written_files_go);
    g_test_add_func("/exec/weights/two at once", two_at_once);
    g_test_add_func("/exec/weights/others are refused", others_are_refused);
    g_test_add_func("/exec/weights/deep headers are refused", deep_headers_are_refused);
    g_test_add_func("/exec/weights/damaged headers are safe", damaged_headers_are_safe);
    g_test_add_data_func("/exec/data/bytes", GUINT_TO_POINTER(1), data_files);
    g_test_add_data_func("/exec/data/uint16", GUINT_TO_POINTER(2), data_files);
    return g_test_run();
}
