"""tests/gpu/session.py - runs parts one after the other, each within its time, and keeps what they leave.

A part is a function that gets the Session. Whatever it does, the next one runs: an exception or a command
that hangs ends that part alone, and is named. Time a part leaves over goes to those after it, and time that
one takes beyond its own is missing from all of those, not from the next alone. The table is
whole after each row, and what else is left after each part: a machine that takes this program away at its
limit leaves what was done until then. A disk that is full ends nothing; the table says so, and is printed.
"""
import atexit
import io
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import threading
import time
import traceback

# What comes back from a machine that is lent: few files, each below 16 MiB.
MOST_FILE_BYTES = 15 * 2**20
PACKING_SECONDS = 15
DYING_SECONDS = 10
# What is made on the way lies elsewhere: the first three come back as one file each.
PACKED, ASIDE = ('logs', 'records', 'traces'), ('logs', 'records', 'traces', 'work')


class Done:
    """How a command ended. rc is 124 when its time was up; is_cut: because the part's was, which says nothing of it."""

    def __init__(self, rc, wall_s, output, is_cut=False):
        self.rc, self.wall_s, self.output, self.is_cut = rc, wall_s, output, is_cut

    def tail(self):
        """The last line, but for what only says that another program has said why."""
        lines = [line.strip() for line in self.output.split('\n') if line.strip()]
        telling = [line for line in lines if 'Child process exited with code' not in line]
        return (telling or lines or [''])[-1][:160]


def killed(process):
    """What it had said. One that the driver holds may not die at once; nobody waits for it then."""
    os.killpg(process.pid, signal.SIGKILL)
    try:
        return process.communicate(timeout=DYING_SECONDS)[0]
    except subprocess.TimeoutExpired as still:
        said = still.output or b''
        return (said.decode(errors='replace') if isinstance(said, bytes) else said) + '\n(killed, and does not die)'


class Session:
    def __init__(self, machine, folder, minutes, dry, cluster=None, began=None):
        self.machine, self.dry, self.minutes = machine, dry, minutes
        self.folder = os.path.realpath(folder)
        self.began = time.monotonic() if began is None else began
        self.until = self.began + 60 * minutes - PACKING_SECONDS
        self.rows = []
        self.part, self.part_until, self.log_file = '', 0, None
        self.running = set()  # processes, each with a group of its own
        self.is_over = False  # nothing more begins
        self.cluster = cluster
        self.trains = False  # whether a toy has trained on the GPU in this visit
        self.suites = {}  # what came of the tests, by program
        self.figures = {}  # what goals.py judges: name -> number, or list of them
        self.head = []  # lines above the table
        self.writing = threading.Lock()  # the table, which programs side by side add rows to
        self.packed = {}
        self.aside = tempfile.mkdtemp(prefix='gpu-run.')
        atexit.register(shutil.rmtree, self.aside, ignore_errors=True)
        os.makedirs(self.folder, exist_ok=True)
        for name in ASIDE:
            os.makedirs(self.path(name))

    def path(self, *names):
        return os.path.join(self.aside if names[0] in ASIDE else self.folder, *names)

    def remaining(self):
        """Seconds this part has left."""
        return max(0.0, self.part_until - time.monotonic())

    def extend(self, seconds):
        """So long from now on for this part, if need be of the others' time, but half of all that is left at most."""
        now = time.monotonic()
        self.part_until = max(self.part_until, now + min(seconds, max(0, self.until - now) / 2))

    def figure(self, name, value):
        """One more number under that name."""
        self.figures.setdefault(name, []).append(value)

    # ---- what a part calls ---------------------------------------------------------------------------

    def kept(self, what, write, *arguments):
        """Writes down what can be; a disk that takes no more is told of once, above the table."""
        try:
            write(*arguments)
        except OSError as error:
            line = '%s could not be written: %s' % (what, error.strerror or error)
            self.head += [] if line in self.head else [line]

    def log(self, text):
        self.kept('logs', self.written_to_log, text)

    def written_to_log(self, text):
        self.log_file.write(text + '\n')
        self.log_file.flush()

    def begun_log(self, name):
        """The log of a part; of a disk that takes no file, one that nobody will read."""
        try:
            return open(self.path('logs', name + '.log'), 'a', encoding='utf-8')
        except OSError:
            return io.StringIO()

    def row(self, name, verdict, value=''):
        """One line of the table: 'ok', 'MISS', 'FAIL', 'skip', or '' for a figure alone."""
        self.rows.append({'part': self.part, 'name': name, 'verdict': verdict, 'value': value,
                          'at_s': round(time.monotonic() - self.began, 1)})
        self.log('row: %s | %s | %s' % (name, verdict, value))
        with self.writing:
            self.kept('results.jsonl', self.append, 'results.jsonl', json.dumps(self.rows[-1]) + '\n')
            self.kept('summary.txt', self.write_table)

    def append(self, name, text, mode='a'):
        with open(self.path(name), mode, encoding='utf-8') as file:
            file.write(text)

    def write_table(self):
        with open(self.path('summary.txt.new'), 'w', encoding='utf-8') as file:
            file.write('\n'.join(self.table()) + '\n')
        os.replace(self.path('summary.txt.new'), self.path('summary.txt'))

    def call(self, *command, limit=None, environment=None, ours=True):
        """Runs one command, all it prints in the part's log; at its limit its whole group is killed."""
        is_cut = self.remaining() < (limit or 1e9)
        limit = min(limit or 1e9, self.remaining())
        command = [str(word) for word in command]
        self.log('\n$ ' + ' '.join(command) + '   (at most %.0f s)' % limit)
        if limit < 1 or self.is_over:
            self.log('no time is left')
            return Done(124, 0, 'no time was left', is_cut=True)
        variables = (self.machine.environment() if ours else dict(os.environ)) | (environment or {})
        began = time.monotonic()
        try:
            process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                                       errors='replace', env=variables, start_new_session=True,
                                       stdin=subprocess.DEVNULL, cwd=self.path('work'))
        except OSError as error:
            self.log(str(error))
            return Done(127, 0, str(error))
        self.running.add(process)
        try:
            output, _ = process.communicate(timeout=limit)
            rc = process.returncode
        except subprocess.TimeoutExpired:
            rc, output = 124, killed(process)
        self.running.discard(process)
        wall_s = time.monotonic() - began
        self.log(output)
        self.log('status %d after %.1f s: %s' % (rc, wall_s, ' '.join(command)))
        return Done(rc, wall_s, output, is_cut and rc == 124)

    def attempt(self, name, function, *arguments):
        """One case of a part: whatever it raises is a row of its own, and the next case begins."""
        try:
            return function(*arguments)
        except Exception as error:
            self.log(traceback.format_exc())
            self.row(name, 'FAIL', '%s: %s' % (type(error).__name__, str(error)[:120]))
            return None

    def end_all(self):
        """Of what still runs, when this program is itself being ended."""
        self.is_over = True
        for process in list(self.running):
            try:
                os.killpg(process.pid, signal.SIGKILL)
            except ProcessLookupError:
                pass  # it has ended by itself

    def beside(self, works):
        """Runs functions at the same time, to the end of each; the first exception of one is raised."""
        failures = []

        def guarded(work):
            try:
                work()
            except Exception as error:  # the others go on
                failures.append(error)
        threads = [threading.Thread(target=guarded, args=(work,), daemon=True) for work in works]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if failures:
            raise failures[0]

    # ---- the parts, in order ---------------------------------------------------------------------------

    def run(self, parts):
        """parts: [(name, seconds of ten minutes, function)]; a part's share of what is left is as its seconds are to those of
        all that are still to come."""
        for i, (name, seconds, function) in enumerate(parts):
            began = time.monotonic()
            share = seconds / max(1, sum(others for _, others, _ in parts[i:]))
            self.part, self.part_until = name, began + max(0, self.until - began) * share
            self.log_file = self.begun_log(name)
            if self.remaining() < 2:
                self.row('all of it', 'skip', 'no time is left')
                self.kept('logs', self.log_file.close)
                continue
            print('%-12s begins at %3.0f s, at most %.0f s' % (name, began - self.began, self.remaining()))
            sys.stdout.flush()
            self.attempt('all of it', function, self)  # the next part must run, whatever went wrong here
            self.row('time', '', '%.1f s' % (time.monotonic() - began))
            self.kept('logs', self.log_file.close)
            self.save()

    def conclude(self, name, function):
        """A last part, which takes no time worth counting: it runs whatever is left of it."""
        self.part, self.part_until = name, time.monotonic() + PACKING_SECONDS
        self.log_file = self.begun_log('goals')
        self.attempt('all of it', function, self)  # the table must come, whatever goes wrong here
        self.kept('logs', self.log_file.close)

    # ---- what is left ------------------------------------------------------------------------------------

    def table(self):
        lines = [*self.head, '']
        part = None
        for row in self.rows:
            if row['name'] == 'time':
                continue
            lines.append('%-12s %-5s %s%s' % (row['part'] if row['part'] != part else '', row['verdict'], row['name'],
                                             ': ' + row['value'] if row['value'] else ''))
            part = row['part']
        counts = {verdict: sum(row['verdict'] == verdict for row in self.rows)
                  for verdict in ('ok', 'MISS', 'FAIL', 'skip')}
        lines += ['', '%d ok, %d missed, %d failed, %d skipped in %.0f s' % (*counts.values(), time.monotonic() -
                                                                              self.began)]
        return [line[:200] for line in lines]

    def save(self):
        """All there is so far."""
        for name in PACKED:
            files = {file: os.path.getsize(self.path(name, file)) for file in sorted(os.listdir(self.path(name)))}
            if files != self.packed.get(name):
                self.kept(name + '.tar.gz', self.pack, name, files)
                self.packed[name] = files
        with self.writing:
            self.kept('summary.txt', self.write_table)

    def pack(self, name, sizes):
        """Puts a folder of results into one file; what makes it too large is named and left out."""
        kept, size = [], 0
        for file in sorted(sizes, key=sizes.get):
            size += sizes[file]
            if size > MOST_FILE_BYTES * (4 if name != 'records' else 8):  # text shrinks so much
                break
            kept.append(file)
        archive_path = self.path(name + '.tar.gz')
        while True:
            with tarfile.open(archive_path + '.new', 'w:gz', compresslevel=6) as archive:
                for file in kept:
                    archive.add(self.path(name, file), os.path.join(name, file))
            if os.path.getsize(archive_path + '.new') <= MOST_FILE_BYTES or not kept:
                break
            kept.pop()
        os.replace(archive_path + '.new', archive_path)
        for file in set(sizes) - set(kept):
            print('left out of %s.tar.gz for its size: %s' % (name, file))
