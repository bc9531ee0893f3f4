"""tests/gpu/machine.py - what is here: our programs, CUDA's libraries, a Python with PyTorch, a GPU.

Programs come from an unpacked bundle or from a build folder; both answer the same questions.
"""
import atexit
import glob
import json
import os
import re
import select
import shutil
import signal
import subprocess
import sys
import time

ROOT = os.path.realpath(os.path.join(os.path.dirname(os.path.abspath(__file__)), '..', '..'))


DRIVER_FOLDER = '/usr/local/nvidia/lib64'  # where containers have it
LOADER = '/lib64/ld-linux-x86-64.so.2'


DYING_SECONDS = 5


def output_of(*command, timeout=60, environment=None):
    """What a command prints; '' when it cannot run or fails, or does not end: one that a broken driver holds does not even
    when it is killed, and is left behind."""
    try:
        process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, errors='replace',
                                   stdin=subprocess.DEVNULL, env=environment, start_new_session=True)
    except OSError:
        return ''
    try:
        output, _ = process.communicate(timeout=timeout)
        return '' if process.returncode else output
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
    try:
        process.communicate(timeout=DYING_SECONDS)
    except subprocess.TimeoutExpired:
        pass
    return ''


def asked_of_smi(names):
    """{name: answer} of the first GPU; {} where there is no nvidia-smi, or it does not know one of them."""
    answer = output_of('nvidia-smi', '--id=0', '--query-gpu=' + ','.join(names), '--format=csv,noheader')
    return dict(zip(names, (field.strip() for field in answer.strip().split(',')))) if answer.strip() else {}


def gpu():
    """Name, driver, memory and so on of the first GPU, or None. Of nvidia-smi, or where there is none of the driver."""
    names = ('name', 'driver_version', 'memory.total', 'power.limit', 'clocks.max.sm', 'clocks.max.mem', 'pstate')
    modes = ('compute_mode', 'mig.mode.current', 'ecc.mode.current')  # which not every GPU has
    return asked_of_smi(names + modes) or asked_of_smi(names) or asked_of_driver("""
device, bytes, text = ctypes.c_int(), ctypes.c_size_t(), ctypes.create_string_buffer(100)
assert cuda.cuInit(0) == 0 and cuda.cuDeviceGet(ctypes.byref(device), 0) == 0
assert cuda.cuDeviceGetName(text, 100, device) == 0 and cuda.cuDeviceTotalMem_v2(ctypes.byref(bytes), device) == 0
print(json.dumps({'name': text.value.decode(), 'driver_version': '(no nvidia-smi says which)',
                  'memory.total': '%d MiB' % (bytes.value >> 20)}))""")


def driver_path():
    return ':'.join(filter(None, (os.environ.get('LD_LIBRARY_PATH'), DRIVER_FOLDER)))


def asked_of_driver(question):
    """What the question prints, as JSON; None when the driver does not answer. In a process of its own: a driver that
    hangs or crashes ends that one alone."""
    answer = output_of(sys.executable, '-B', '-c', "import ctypes, json\ncuda = ctypes.CDLL('libcuda.so.1')\n" + question,
                       environment=os.environ | {'LD_LIBRARY_PATH': driver_path()})
    return json.loads(answer) if answer.strip() else None


def driver_takes():
    """The CUDA version that the driver is made for, as (major, minor); None when it cannot be asked."""
    version = asked_of_driver("version = ctypes.c_int()\nassert cuda.cuDriverGetVersion(ctypes.byref(version)) == 0\n"
                              "print(version.value)")
    return (version // 1000, version % 1000 // 10) if version else None


HOLDS_OPEN = """
import ctypes, sys
nvml, device = ctypes.CDLL('libnvidia-ml.so.1'), ctypes.c_void_p()
assert nvml.nvmlInit_v2() == 0 and nvml.nvmlDeviceGetHandleByIndex_v2(0, ctypes.byref(device)) == 0
print('held', flush=True)
sys.stdin.read()
"""


def held_open(timeout=20):
    """A process that holds the first GPU open until its stdin is closed, as it is when this process ends; None where NVML
    is missing, refuses or hangs. Where no daemon does so, the driver sets a GPU up for each program that opens it while no
    other one has it, which takes seconds, and lets it go behind the last. (No setting of the GPU is changed.)"""
    try:
        process = subprocess.Popen([sys.executable, '-B', '-c', HOLDS_OPEN], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                   stderr=subprocess.DEVNULL, text=True, env=os.environ | {'LD_LIBRARY_PATH': driver_path()})
    except OSError:
        return None
    if select.select([process.stdout], [], [], timeout)[0] and process.stdout.readline() == 'held\n':
        return process
    process.kill()
    return None


ASKING_SECONDS = 20  # for a Python that only looks at what it has
IMPORT_SECONDS = 90  # for PyTorch from a disk that nobody has read yet; assumed


def python_with_torch():
    """The path of a Python that has torch 2.11 or later, and its version of it; or (None, ''), as if there were none where
    FORESHARD_TORCH_PYTHON names nothing. None is asked twice, and none imports it yet, which takes up to a minute."""
    question = ('from importlib.metadata import version; v = version("torch"); '
                'assert tuple(map(int, v.split(".")[:2])) >= (2, 11); print(v)')
    wanted = os.environ.get('FORESHARD_TORCH_PYTHON')
    named = () if wanted == '' else (wanted, sys.executable, 'python3')
    for python in dict.fromkeys(filter(None, (shutil.which(name) for name in named if name))):
        version = output_of(python, '-c', question, timeout=ASKING_SECONDS)
        if version:
            return python, version.strip()
    return None, ''


class Import:
    """A Python that imports PyTorch while other things are done: for whoever wants it later it is read from the disk then,
    and whether it can be imported is known."""

    def __init__(self, python):
        self.until, self.why = time.monotonic() + IMPORT_SECONDS, None
        self.process = subprocess.Popen([python, '-c', 'import torch'], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                        stderr=subprocess.PIPE, text=True, errors='replace', start_new_session=True)
        atexit.register(self.end)

    def end(self):
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)

    def fails(self):
        """Why there is no PyTorch; '' when there is. Waits until it is known."""
        if self.why is None:
            try:
                said = self.process.communicate(timeout=max(0, self.until - time.monotonic()))[1].strip()
                self.why = 'it cannot be imported: ' + said.split('\n')[-1] if self.process.returncode else ''
            except subprocess.TimeoutExpired:
                self.end()
                self.why = 'its import has not ended after %.0f s' % IMPORT_SECONDS
        return self.why


# Of models/clusters, what a GPU is predicted as until it has been measured: the first of whose name it has a part.
LIKE = (('GH200', 'gh200-alps'), ('H200', 'h200-node'), ('H100 PCIe', 'h100-pcie'), ('H100', 'dgx-h100'),
        ('B200', 'b200-node'), ('A100', 'a100-node'))


def cluster_like(gpu):
    """The name of a cluster file; without a GPU, or of one that none is like, that of an H200."""
    name = (gpu or {}).get('name', '')
    return next((cluster for part, cluster in LIKE if part in name), 'h200-node')


def cuda_folders(python):
    """Where CUDA's libraries, cuDNN and NCCL may lie; those of PyTorch first, so that both sides use the same."""
    folders = []
    if python:
        # Found without importing it, which takes seconds.
        place = output_of(python, '-c', 'import importlib.util as u; print(u.find_spec("torch").origin)')
        packages = os.path.dirname(os.path.dirname(place.strip()))
        folders += sorted(glob.glob(os.path.join(packages, 'nvidia', '*', 'lib')))
    folders += [os.path.join(os.environ.get('CUDA_HOME', '/usr/local/cuda'), lib)
                for lib in ('lib64', 'lib', 'targets/x86_64-linux/lib')]
    folders.append(DRIVER_FOLDER)
    return [folder for folder in folders if os.path.isdir(folder)]


def of_test(variables):
    """A test's environment, but for where Meson found libraries: that is for environment() below to say."""
    return {name: value for name, value in variables.items() if name != 'LD_LIBRARY_PATH'}


# What the GPU's part of the programs loads when it is first wanted: cuDNN with what it loads itself when it plans, and the
# compiler that one of its engines calls; NCCL.
LOADED_LATER = {'cuDNN': ('libcudnn.so', 'libcudnn_graph.so', 'libcudnn_engines_precompiled.so',
                          'libcudnn_engines_runtime_compiled.so', 'libcudnn_heuristic.so', 'libnvrtc-builtins.so',
                          'libnvrtc.so'),
                'NCCL': ('libnccl.so',)}


def known_to_loader():
    return output_of('sh', '-c', 'PATH=$PATH:/sbin:/usr/sbin ldconfig -p')


class Machine:
    """`programs` maps a name to its path; `tests` and `benches` are what suite gpu and bench/ hold."""

    def __init__(self, python):
        self.python = python
        self.importing = None  # an Import of its PyTorch
        self.cluster = cluster_like(None)  # that this machine is most like
        self.refused = ''  # why the driver cannot run the programs
        self.holder = None  # the process that holds the GPU open
        self.libraries = []
        self.told_loaded = None  # what the loader has said; None: not asked yet
        self.cuda_libraries = cuda_folders(python)
        self.variables = {}

    def environment(self):
        """For our programs alone: Python keeps its own libraries."""
        folders = self.libraries + self.cuda_libraries
        inherited = os.environ.get('LD_LIBRARY_PATH')
        path = ':'.join(folders + ([inherited] if inherited else []))
        return os.environ | ({'LD_LIBRARY_PATH': path} if path else {}) | self.variables

    def needs_cuda(self):
        """The CUDA version whose runtime the programs load: 13 for libcudart.so.13; None without one."""
        found = [int(match.group(1)) for _, library, _ in self.loaded()
                 for match in [re.match(r'lib(?:cudart|cublasLt)\.so\.(\d+)', library)] if match]
        return max(found, default=None)

    def lacks(self):
        """What the loader does not find: 'foreshard-cuda.so lacks libcublasLt.so.13', ..."""
        return ['%s lacks %s' % (program, library) for program, library, path in self.loaded() if path == 'not found']

    def not_loaded_later(self, what):
        """Of LOADED_LATER, what lies in no folder that the loader looks in."""
        known, folders = known_to_loader(), self.environment().get('LD_LIBRARY_PATH', '').split(':')
        return [part for part in LOADED_LATER[what] if 'foreshard-cuda.so' in self.programs and part + '.' not in known
                and not any(glob.glob(os.path.join(glob.escape(folder), part + '.*')) for folder in folders if folder)]

    def loaded(self):
        """(program, library, where the loader finds it or 'not found') of each program; asked once, since it is a process
        for each of them."""
        if self.told_loaded is None:
            self.told_loaded = self.ask_loader()
        return self.told_loaded

    def ask_loader(self):
        """ldd, or the loader itself where there is none, which is a script around it."""
        found, environment = [], self.environment()
        for name, path in sorted(self.programs.items()):
            told = output_of('ldd', path, environment=environment) or output_of(LOADER, '--list', path, environment=environment)
            found += [(name, *pair) for pair in re.findall(r'(\S+) => (not found|\S+)', told)]
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
        """A word of a test's command, as it is on this machine."""
        path = os.path.join(self.root, word)
        if word == 'python3':
            return sys.executable
        return path if word.startswith(('files/', 'bin/', 'tests/')) and os.path.exists(path) else word


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
