"""tests/cli/test-completion.py FORESHARD SOURCE - what bash offers after each word of a command line, by
cli/foreshard.bash."""
import os
import shutil
import subprocess
import sys

sys.path[:0] = [os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', 'style')]
from tap import Tap

# Words, the last of them unfinished; what must be offered, and what must not.
CASES = {
    'a command': (['pre'], ['predict'], ['plot']),
    'all commands': ([''], ['plan', 'list', 'predict', 'collectives', 'diagnose', 'export'], ['Usage', 'foreshard']),
    'help of a command': (['help', 'col'], ['collectives'], ['compare']),
    'a network': (['predict', 'llama3-'], ['llama3-8b', 'llama3-70b', 'llama3-405b'], ['gpt2']),
    'an option': (['predict', 'gpt2', '--clu'], ['--cluster'], ['--checkpointing']),
    'a strategy option': (['run', 'gpt-toy', '--checkp'], ['--checkpointing', '--checkpoint-place'], []),
    'a cluster': (['predict', 'gpt2', '--cluster', 'dgx'], ['dgx-h100'], ['a100-node']),
    'a cluster, in short': (['plot', 'gpt2', '-c', 'b2'], ['b200-node', 'b200-p6'], []),
    'a choice': (['plan', 'gpt2', '--sharding', 'hy'], ['hybrid', 'hybrid-grad-op'], ['full']),
    'a choice behind =': (['plan', 'gpt2', '--sharding', '=', 'hy'], ['hybrid', 'hybrid-grad-op'], ['full']),
    'every choice behind =': (['plan', 'gpt2', '--sharding', '='], ['full', 'none'], ['=']),
    'a choice with a value': (['plan', 'gpt2', '--checkpointing', ''], ['none', 'every=', 'module='], ['every=K', 'full;']),
    'a choice whose value follows': (['plan', 'gpt2', '--wrap', 'ev'], ['every=', '-o nospace +o filenames'], []),
    'a choice that is whole': (['plan', 'gpt2', '--wrap', 'who'], ['whole'], ['-o nospace +o filenames']),
    'a choice beside a number': (['plan', 'gpt2', '--reshard-after-forward', ''], ['default', 'yes'], ['N']),
    'a picture': (['plot', 'a.trace', '-p', 'l'], ['lanes'], ['memory']),
    'a knob': (['choose', 'gpt2', '--knob', 'mic'], ['micro_batch='], ['micro_batch', 'micro-batch=']),
    'a knob, in short': (['plot', 'gpt2', '-k', ''], ['wrap=', 'ranks='], ['strategy=', 'network_key=']),
    "a knob's value": (['choose', 'gpt2', '--knob', 'checkpointing', '='], ['none', 'full'], ['gpt2', 'README.md']),
    "a knob's next value": (['plot', 'gpt2', '-k', 'param_dtype', '=', 'fp32,b'], ['fp32,bf16'], ['bf16', 'fp32,fp16']),
    "a knob's value, all behind =": (['plot', 'gpt2', '--knob', '=', 'kernels', '=', 'fu'], ['fused'], ['eager']),
    'a number to explain': (['explain', 'peak_'], ['peak_allocated_bytes', 'peak_reserved_bytes'], ['step_ms', 'gpt2']),
    'every number': (['explain', ''], ['step_ms', 'comm', 'every_rank', 'shardings'], ['time', 'what', 'root']),
    'what it is of': (['explain', 'mfu', 'gpt2'], ['gpt2', 'gpt2-xl'], ['mfu']),
    'a device': (['run', 'gpt-toy', '--device', ''], ['host', 'cuda'], []),
    'a list': (['list', 'n'], ['networks'], ['clusters']),
    'a name': (['list', 'a100-p4'], ['a100-p4d', 'a100-p4de'], ['networks']),
}


def offered(program, source, words):
    script = ('compopt() { echo "$*"; }; source "$1"; shift; COMP_WORDS=("$@"); COMP_CWORD=$((${#COMP_WORDS[@]} - 1)); _foreshard; '
              'printf "%s\\n" "${COMPREPLY[@]}"')
    result = subprocess.run(['bash', '-c', script, 'bash', os.path.join(source, 'cli', 'foreshard.bash'),
                             program, *words], capture_output=True, text=True, check=False)
    return result.stdout.split('\n'), result.stderr


def check(program, source, words, wanted, unwanted):
    found, err = offered(program, source, words)
    said = ['%s is not offered' % word for word in wanted if word not in found]
    said += ['%s is offered' % word for word in unwanted if word in found]
    return said + ([err] if err else [])


def main():
    tap = Tap()
    program, source = os.path.abspath(sys.argv[1]), sys.argv[2]
    if not shutil.which('bash'):
        print('1..0 # SKIP no bash')
        return 0
    for name, (words, wanted, unwanted) in CASES.items():
        tap.case(name, check(program, source, words, wanted, unwanted))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
