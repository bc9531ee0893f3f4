"""tests/gpu/machine.py - what is here: our programs, CUDA's libraries, a Python with PyTorch, a GPU.

Programs come from an unpacked bundle or from a build folder; both answer the same questions.
"""
import glob
import json
import os
import re
import subprocess
import sys

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))


def output_of(*command, timeout=60):
    """What a command prints; '' when it cannot run or fails."""
    try:
        return subprocess.run(command, capture_output=True, text=True, timeout=timeout, check=True).stdout
    except (OSError, subprocess.SubprocessError):
        return ''


def gpu():
    """Name, driver, memory and so on of the first GPU, or None."""
    names = ('name', 'driver_version', 'memory.total', 'power.limit', 'clocks.max.sm', 'clocks.max.mem', 'pstate')
    answer = output_of('nvidia-smi', '--id=0', '--query-gpu=' + ','.join(names), '--format=csv,noheader')
    return dict(zip(names, (field.strip() for field in answer.strip().split(',')))) if answer.strip() else None


def python_with_torch():
    """The path of a Python that imports torch 2.11 or later, and its version of it; or (None, '')."""
    question = 'import torch; v = torch.__version__; assert tuple(map(int, v.split(".")[:2])) >= (2, 11); print(v)'
    for python in (os.environ.get('FORESHARD_TORCH_PYTHON'), sys.executable, 'python3'):
        version = output_of(python, '-c', question, timeout=180) if python else ''
        if version:
            return python, version.strip()
    return None, ''


def cuda_folders(python):
    """Where CUDA's libraries, cuDNN and NCCL may lie, the toolkit first."""
    folders = [os.path.join(home, lib) for home in (os.environ.get('CUDA_HOME', '/usr/local/cuda'),)
               for lib in ('lib64', 'lib', 'targets/x86_64-linux/lib')]
    if python:
        # Found without importing it, which takes seconds.
        place = output_of(python, '-c', 'import importlib.util as u; print(u.find_spec("torch").origin)')
        packages = os.path.dirname(os.path.dirname(place.strip()))
        folders += sorted(glob.glob(os.path.join(packages, 'nvidia', '*', 'lib')))
    folders.append('/usr/local/nvidia/lib64')
    return [folder for folder in folders if os.path.isdir(folder)]


def of_test(variables):
    """A test's environment, but for where Meson found libraries: that is for environment() below to say."""
    return {name: value for name, value in variables.items() if name != 'LD_LIBRARY_PATH'}


class Machine:
    """`programs` maps a name to its path; `tests` and `benches` are what suite gpu and bench/ hold."""

    def __init__(self, python):
        self.python = python
        self.libraries = []
        self.cuda_libraries = cuda_folders(python)
        self.variables = {}

    def environment(self):
        """For our programs alone: Python keeps its own libraries."""
        folders = self.libraries + self.cuda_libraries
        inherited = os.environ.get('LD_LIBRARY_PATH')
        path = ':'.join(folders + ([inherited] if inherited else []))
        return os.environ | ({'LD_LIBRARY_PATH': path} if path else {}) | self.variables

    def loaded(self):
        """(program, library, where the loader finds it or 'not found') of each program."""
        found = []
        for name, path in sorted(self.programs.items()):
            done = subprocess.run(['ldd', path], capture_output=True, text=True, env=self.environment(), check=False)
            found += [(name, *pair) for pair in re.findall(r'(\S+) => (not found|\S+)', done.stdout)]
        return found


class Bundled(Machine):
    """An unpacked bundle: manifest.json says what is in it."""

    def __init__(self, folder, python):
        super().__init__(python)
        self.root = folder
        with open(os.path.join(folder, 'manifest.json'), encoding='utf-8') as file:
            manifest = json.load(file)
        self.what = 'bundle of commit %s, made %s' % (manifest['commit'], manifest['date'])
        self.programs = {os.path.basename(path): os.path.join(folder, path) for path in manifest['programs']}
        self.benches = [os.path.join(folder, path) for path in manifest['benches']]
        self.tests = [dict(test, command=[self.here(word) for word in test['command']],
                           environment=of_test(test['environment'])) for test in manifest['tests']]
        self.libraries = [os.path.join(folder, 'lib')]
        self.data = os.path.join(folder, 'data')
        self.variables = {'FORESHARD_DATA': self.data}

    def here(self, word):
        path = os.path.join(self.root, word)
        return path if word.startswith('files' + os.sep) and os.path.exists(path) else word


class Built(Machine):
    """A build folder of this source tree."""

    def __init__(self, folder, python):
        super().__init__(python)
        self.root = ROOT
        self.what = 'build folder ' + folder
        names = ('cli/foreshard', 'exec/foreshard-exec', 'exec/foreshard-cuda.so', 'tests/oracle/gpu/check-memory',
                 'bench/fit-gemm')
        self.programs = {os.path.basename(name): os.path.join(folder, name) for name in names
                         if os.path.exists(os.path.join(folder, name))}
        self.data = os.path.join(ROOT, 'models')
        self.tests = [{'name': test['name'], 'command': test['cmd'], 'environment': of_test(test['env']),
                       'timeout': test['timeout']} for test in self.introspected(folder, 'tests')
                      if any(suite.split(':')[-1] == 'gpu' for suite in test['suite'])]
        self.benches = [target['filename'][0] for target in self.introspected(folder, 'targets')
                        if target['type'] == 'executable' and re.match(r'bench-.*cuda', target['name'])]

    @staticmethod
    def introspected(folder, what):
        with open(os.path.join(folder, 'meson-info', 'intro-%s.json' % what), encoding='utf-8') as file:
            return json.load(file)
