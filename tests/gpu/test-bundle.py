"""tests/gpu/bundle and tests/gpu/keep, as far as a machine without a GPU can tell.

    test-bundle.py SOURCE-ROOT BUILD-FOLDER
"""
import glob
import json
import os
import random
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile

from trying import BUILD, BUNDLE, KEEP, ROOT, RUN, module_of, run, unlike

import machine as machines
from tap import Tap


def keep_case(tap, folder):
    """What a GPU machine left is filed by date and GPU; what a dry run left is not."""
    left = os.path.join(folder, 'left')
    os.makedirs(os.path.join(left, 'records'))
    with open(os.path.join(left, 'records', 'host.jsonl'), 'w', encoding='utf-8') as file:
        file.write('{"header":{}}\n')
    with tarfile.open(os.path.join(left, 'records.tar.gz'), 'w:gz') as archive:
        archive.add(os.path.join(left, 'records'), 'records')
    for name in ('summary.txt', 'calibrated.ini', 'logs.tar.gz'):
        with open(os.path.join(left, name), 'w', encoding='utf-8') as file:
            file.write('text\n')
    head = {'header': '2026-01-02, ...', 'date': '2026-01-02', 'gpu': {'name': 'NVIDIA H200'}, 'dry': False}
    complaints = []
    for dry, status in ((False, 0), (True, 2)):
        with open(os.path.join(left, 'results.jsonl'), 'w', encoding='utf-8') as file:
            file.write(json.dumps(head | {'dry': dry}) + '\n')
        done = run(KEEP, left, '--into', os.path.join(folder, 'kept%d' % dry))
        complaints += unlike(done, status)
    kept = os.path.join(folder, 'kept0', '2026-01-02-nvidia-h200')
    files = sorted(os.path.relpath(os.path.join(where, name), kept) for where, _, names in os.walk(kept)
                   for name in names)
    if files != ['calibrated.ini', 'host.jsonl', 'results.jsonl', 'summary.txt']:
        complaints.append('keeps ' + ' '.join(files))
    tap.case('/gpu/keep/results are filed by date and GPU', complaints)


# ---- the bundle --------------------------------------------------------------------------------------

def tree_case(tap):
    """A tree that is too large to travel with its bundle is told of, with what to leave out."""
    bundle, mib = module_of(BUNDLE), 2**20
    few, many = bundle.told_of_tree(30 * mib, 34 * mib, 20 * mib), bundle.told_of_tree(30 * mib, 72 * mib, 58 * mib)
    complaints = [few] if few else []
    complaints += [] if '72 MiB' in many and 'tests/oracle/recordings (58 MiB)' in many else [many]
    if os.path.isdir(os.path.join(ROOT, bundle.HEAVY)) and os.path.exists(os.path.join(ROOT, '.git')):
        complaints += [] if bundle.tree_bytes(bundle.HEAVY) * 2 > bundle.tree_bytes() else ['it is not most of the tree']
    tap.case('/gpu/bundle/a tree too large to travel along is told of', complaints)


def packing_case(tap, folder):
    """What several programs share, as the kernels, is packed once, however far apart they stand."""
    source, packed = os.path.join(folder, 'alike'), os.path.join(folder, 'alike.tar.xz')
    os.makedirs(source)
    for name, text in (('a', b'kernels'), ('b', b'others'), ('c', b'kernels')):
        with open(os.path.join(source, name), 'wb') as file:
            file.write(random.Random(text).randbytes(3 * 2**20))
    bundle = module_of(BUNDLE)
    size = bundle.pack(source, packed)
    with tarfile.open(packed) as archive:
        names = archive.getnames()
    tap.case('/gpu/bundle/what programs share is packed once', ['%.1f MiB of %s' % (size / 2**20, names)] * (
        size > 7 * 2**20 or len(names) != 4))


def bundle_cases(tap, folder):
    bundle = os.path.join(folder, 'bundle.tar.xz')
    done = run(BUNDLE, '--build', BUILD, '--no-build', '-o', bundle)
    tap.case('/gpu/bundle/it is packed', unlike(done, 0, 'MiB'))
    if done.returncode:
        return
    with tarfile.open(bundle) as archive:
        names = archive.getnames()
    module = '/foreshard-cuda.so'
    alone = [name for name in names if os.path.basename(name) == 'foreshard-exec'
             and os.path.dirname(name) + module not in names]
    tap.case('/gpu/bundle/a program has beside it what it loads', alone if any(
        name.endswith(module) for name in names) else [])
    output = os.path.join(folder, 'from-bundle')
    done = run(RUN, '--dry', '--bundle', bundle, '--output', output, '--parts', 'info,matrix', '--minutes', '1')
    tap.case('/gpu/bundle/run takes its programs from it', unlike(done, 0, 'bundle of commit', 'allocated equal at all'))
    case = '/gpu/bundle/its programs need nothing but a C library'
    if os.getuid() != 0 or not shutil.which('chroot'):
        tap.skip(case, 'only root may change the root')
        return
    jail = os.path.join(folder, 'jail')
    furnish(jail, bundle)
    if glob.glob(os.path.join(jail, 'gpu-bundle', 'lib', 'lib*san.so*')):
        tap.skip(case, 'sanitizers need more')
        return
    inside = ['env', '-i', 'LD_LIBRARY_PATH=/gpu-bundle/lib', 'FORESHARD_DATA=/gpu-bundle/data', shutil.which('chroot'),
              jail]
    complaints = unlike(run(*inside, '/gpu-bundle/bin/foreshard', 'plan', 'gpt-toy', '-n', '2', '-o', '/toy.plan'), 0)
    complaints += unlike(run(*inside, '/gpu-bundle/bin/foreshard', 'predict', '/toy.plan', '--cluster', 'h200-node'), 0,
                         'fits')
    complaints += unlike(run(*inside, '/gpu-bundle/bin/check-memory', '/gpu-bundle/tests/oracle/gpu/samples/'
                             'memory-gpt-toy-fsdp2-w8.jsonl'), 0, 'allocated holds')
    with tarfile.open(bundle) as archive:
        manifest = json.load(archive.extractfile('gpu-bundle/manifest.json'))
    complaints += ['programs do not begin without ' + name for name in manifest['expects']
                   if re.match('lib(cudnn|nccl)', name)]
    execute = (*inside, '/gpu-bundle/bin/foreshard-exec')
    complaints += unlike(run(*execute, '/toy.plan', '--local-ranks', '2', '--steps', '2'), 0, 'step time')
    no_cuda = 'cannot be loaded: libcu' if 'bin/foreshard-cuda.so' in manifest['programs'] else '-Dcuda=enabled'
    complaints += unlike(run(*execute, '/toy.plan', '--device', 'cuda'), 1 if no_cuda[0] == 'c' else 2, no_cuda)
    for name in ('tmp', 'dev'):
        os.makedirs(os.path.join(jail, name))
    with open(os.path.join(jail, 'dev', 'null'), 'w', encoding='utf-8'):
        pass  # empty, as the real one is to whoever reads it
    for test in manifest['tests']:  # one that links nothing of CUDA itself
        if test['name'] == 'exec/gpu':
            words = [os.path.join('/gpu-bundle', word) if word.startswith(('files/', 'bin/')) else word
                     for word in test['command']]
            more = ['%s=%s' % pair for pair in machines.of_test(test['environment']).items()]
            complaints += unlike(run(*inside[:2], *more, *inside[2:], *words), 0, '# SKIP no GPU')
    tap.case(case, complaints)


def python_case(tap, folder):
    """A test of Python is carried with what it reads and imports, and runs on a machine whose Python lies elsewhere. The one
    of traced networks on the emulated GPU stands for that on a real one, which has the same words."""
    case, bundle = '/gpu/bundle/a test of Python runs from it', module_of(BUNDLE)
    test = next((test for test in bundle.introspected(BUILD, 'tests') if test['name'] == 'exec/traced-emulated'), None)
    if not test:
        tap.skip(case, 'no emulated GPU in this build')
        return
    bundle.introspected = lambda *_: [test | {'suite': ['gpu'], 'cmd': ['/nowhere/python3.99', *test['cmd'][1:]]}]
    packed = bundle.Bundle(BUILD, folder)
    manifest = {'commit': '0', 'date': '', 'benches': [], 'tests': packed.place_tests(),
                'programs': [packed.place(os.path.join(BUILD, 'cli', 'foreshard'), 'bin')]}
    bundle.copy_files(folder)
    with open(os.path.join(folder, 'manifest.json'), 'w', encoding='utf-8') as file:
        json.dump(manifest, file)
    machine = machines.Bundled(folder, None)
    words, path = machine.tests[0]['command'], '/exec/traced/gpt_toy -n 1 --sharding none'
    abroad = [word for word in words[1:] if os.sep in word and not word.startswith(folder)]
    done = run(*words, '-p', path, env=machine.environment() | {'LD_LIBRARY_PATH': test['env']['LD_LIBRARY_PATH']})
    tap.case(case, unlike(done, 0, 'ok 1 ' + path, '1..1') + ['not carried: ' + word for word in abroad])


def furnish(jail, bundle):
    """A root with the C library, its loader and the unpacked bundle; nothing else."""
    os.makedirs(jail)
    with tarfile.open(bundle) as archive:
        archive.extractall(jail)
    printed = subprocess.run(['ldd', os.path.join(jail, 'gpu-bundle', 'bin', 'foreshard')], capture_output=True,
                             text=True, check=True).stdout
    for path in re.findall(r'(/\S+)', printed):
        if re.match(r'(ld-linux.*|libc|libm)\.so', os.path.basename(path)):
            os.makedirs(os.path.dirname(jail + path), exist_ok=True)
            shutil.copy2(os.path.realpath(path), jail + path)
    for folder in glob.glob('/lib*'):  # the loader looks in /lib; here that may be a link into /usr
        target = os.path.join(jail, 'usr' + folder)
        if os.path.islink(folder) and not os.path.exists(target):
            os.makedirs(os.path.dirname(target), exist_ok=True)
            if os.path.isdir(jail + folder):
                shutil.copytree(jail + folder, target)


def main():
    tap = Tap()
    with tempfile.TemporaryDirectory() as folder:
        keep_case(tap, folder)
        tree_case(tap)
        packing_case(tap, folder)
        bundle_cases(tap, folder)
        python_case(tap, os.path.join(folder, 'of-python'))
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
