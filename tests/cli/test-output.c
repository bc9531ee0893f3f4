/* What foreshard writes: where to, what it does not write over, and what it says when there is no
 * room. Takes the path of foreshard as its argument.
 */
#include <gio/gio.h>
#include <string.h>

#include "tests/cli/shell.h"

/* What is read is not written over, whatever name it has. */
static void inputs_are_spared(void) {
    static const char *const words[] = {
        "plan mine.ini -n 2 -o mine.ini",
        "plan mine.ini -n 2 -o ./mine.ini",
        "predict mine.ini -n 2 --cluster this-machine --trace mine.ini",
        "run mine.ini -n 2 --steps 1 --trace mine.ini",
        "run gpt-toy -n 2 --steps 1 --data mine.ini --trace mine.ini",
        "run mine.ini -n 2 --steps 1 --save mine.ini",
        "rehearse mine.ini -n 2 --rank 0 --cluster two-laptops --trace mine.ini",
        "export --chrome mine.ini -o mine.ini",
        "report mine.ini -o mine.ini",
        "run gpt-toy -n 2 --steps 1 --pace mine.ini --trace mine.ini",
        "run gpt-toy -n 2 --steps 1 --pace mine.ini --save mine.ini",
        "run gpt-toy -n 2 --steps 1 --strategy mine.ini --trace mine.ini",
        "run gpt-toy -n 2 --steps 1 --strategy mine.ini --save mine.ini",
        "plan gpt-toy --strategy mine.ini -o mine.ini",
        "predict gpt-toy --strategy mine.ini --cluster two-laptops --trace mine.ini",
        "rehearse gpt-toy --strategy mine.ini --rank 0 --cluster two-laptops --trace mine.ini",
    };
    static const char text[] = "[network]\nfamily = mlp\nlayers = 2\nwidth = 8\nseq = 4\n";
    expect("run gpt-toy -n 2 --steps 1 --trace x --save ./x", 2, "", "both name ./x; give each a");
    for (unsigned i = 0; i < G_N_ELEMENTS(words); i++) {
        write_file("mine.ini", text);
        expect(words[i], 2, "", "is read and would be written over");
        g_autofree char *left = read_file("mine.ini");
        g_assert_cmpstr(left, ==, text);
    }
}

/* Linux's /dev/full takes nothing, as a full disk. Long output finds out before the end, short only
 * there, and after --help it is GLib that ends the program. (tests/exec/failures.c has runs.) */
static void full_disk(void) {
    static const char *const commands[] = {
        "--help",
        "plan --help",
        "list",
        "plan gpt-toy",
        "plan gpt-toy --print",
        "plan gpt-toy -o -",
        "units gpt-toy --tree",
        "predict gpt-toy --cluster this-machine",
        "predict gpt-toy --cluster this-machine --json",
        "collectives --cluster a100-node",
    };
    for (unsigned i = 0; i < G_N_ELEMENTS(commands); i++) {
        g_auto(GStrv) words = g_strsplit(commands[i], " ", -1);
        g_autoptr(GPtrArray) argv = g_ptr_array_new();
        g_ptr_array_add(argv, (gpointer)shell.program);
        for (char **word = words; *word; word++) {
            g_ptr_array_add(argv, *word);
        }
        g_ptr_array_add(argv, NULL);
        g_autoptr(GSubprocessLauncher) launcher =
            g_subprocess_launcher_new(G_SUBPROCESS_FLAGS_STDERR_PIPE);
        g_subprocess_launcher_set_stdout_file_path(launcher, "/dev/full");
        g_autoptr(GSubprocess) process =
            g_subprocess_launcher_spawnv(launcher, (const char *const *)argv->pdata, NULL);
        g_autofree char *said = NULL;
        g_assert_true(g_subprocess_communicate_utf8(process, NULL, NULL, NULL, &said, NULL));
        g_assert_cmpint(g_subprocess_get_exit_status(process), ==, 1);
        g_assert_nonnull(strstr(said, "the output cannot be written"));
        g_assert_true(strchr(said, '\n') == said + strlen(said) - 1); /* and nothing else */
    }
}

/* A trace that finds no room does not take the prediction with it. */
static void full_disk_for_a_trace(void) {
    expect("predict gpt-toy --cluster this-machine --trace /dev/full", 1,
           "trains well: ", "/dev/full: cannot be written: No space left on device");
}

/* "-o -" is standard output, which then has the file alone; elsewhere it is refused, and no file
 * gets that name. */
static void standard_output(void) {
    static const char *const refused[] = {
        "predict gpt-toy --cluster this-machine --trace -",
        "run gpt-toy --steps 1 --trace -",
        "run gpt-toy --steps 1 --save -",
        "rehearse gpt-toy -n 2 --rank 1 --cluster two-laptops --trace -",
        "compare gpt.trace gpt.trace -o -",
    };
    static const struct {
        const char *to_file, *to_standard;
    } alike[] = {
        {"plan gpt-toy -n 2 -o alike", "plan gpt-toy -n 2 -o -"},
        {"export --chrome gpt.trace -o alike", "export --chrome gpt.trace -o -"},
        {"report gpt.trace -o alike", "report gpt.trace -o -"}, /* the last: needs gnuplot */
    };
    g_autofree char *gnuplot = g_find_program_in_path("gnuplot");
    expect("predict gpt-toy -n 2 --cluster this-machine --trace gpt.trace", 0, "step ", "");
    g_autofree char *dash = g_build_filename(shell.folder, "-", NULL);
    for (unsigned i = 0; i < G_N_ELEMENTS(alike) - !gnuplot; i++) {
        expect(alike[i].to_file, 0, "", "");
        g_auto(Result) result = run(alike[i].to_standard);
        g_assert_cmpint(result.status, ==, 0);
        g_autofree char *written = read_file("alike");
        g_assert_cmpuint(strlen(written), >, 1000);
        g_assert_cmpstr(result.out, ==, written);
    }
    for (unsigned i = 0; i < G_N_ELEMENTS(refused); i++) {
        expect(refused[i], 2, "", " -: standard output has what is printed already; give a name");
    }
    expect("plot gpt-toy --cluster this-machine -o -", 2, "", "a picture's name ends in");
    g_assert_false(g_file_test(dash, G_FILE_TEST_EXISTS));
}

static void output_is_not_lost(void) {
    expect("plan gpt-toy -o no-such-folder/x.plan", 1, "", "no-such-folder/x.plan");
    expect("predict gpt-toy --cluster this-machine --trace no-such-folder/x.trace", 1, "",
           "no-such-folder/x.trace");
    expect("run mlp-toy -n 2 --trace no-such-folder/x.trace", 1, "", "no-such-folder/x.trace");
    expect("rehearse mlp-toy -n 2 --rank 0 --cluster a100-node --trace no-such-folder/x", 1, "",
           "no-such-folder/x");
    expect("calibrate -n 1 -o no-such-folder/x.ini", 1, "", "no-such-folder");
    expect("choose gpt-toy --cluster a100-node -o no-such-folder/x", 1, "", "x: cannot be written");
    expect("predict gpt-toy --cluster this-machine --trace /dev/null", 0, "step ", "");
    expect("calibrate -n 1 -o .", 1, "", ". is a folder; name a file to write");
}

int main(int argc, char **argv) {
    shell_init(&argc, &argv);
    g_test_add_func("/cli/output/inputs are spared", inputs_are_spared);
    g_test_add_func("/cli/output/full disk", full_disk);
    g_test_add_func("/cli/output/full disk for a trace", full_disk_for_a_trace);
    g_test_add_func("/cli/output/standard output", standard_output);
    g_test_add_func("/cli/output/unwritable output", output_is_not_lost);
    return shell_finish(g_test_run());
}
