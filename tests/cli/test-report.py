"""tests/cli/test-report.py FORESHARD - the page that `foreshard report` writes: sound HTML that loads
nothing, with the drawings' curves, categories and peaks in it, and the traces' numbers."""
import html.parser
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path[:0] = [os.path.join(HERE, '..', 'style'), os.path.join(HERE, '..', 'trace')]
from tap import Tap
from trace_text import Trace

VOID = {'meta', 'br', 'hr', 'img', 'input', 'link'}
CATEGORIES = ['parameters', 'gradients', 'optimizer', 'activations', 'temporary', 'communication']
MIB = 1 << 20


class Page(html.parser.HTMLParser):
    """Elements by id, text by the id of each element that holds it, and what is wrong."""

    def __init__(self, text):
        super().__init__()
        self.open, self.ids, self.said, self.references = [], {}, [], []
        self.feed(text)
        self.close()
        if self.open:
            self.said.append('never closed: ' + ', '.join(tag for tag, _ in self.open[:5]))
        for reference in self.references:
            if reference not in self.ids:
                self.said.append('#%s refers to nothing' % reference)

    def handle_starttag(self, tag, attrs):
        attrs = dict(attrs)
        name = attrs.get('id')
        if name in self.ids:
            self.said.append('two elements have the id ' + name)
        if name:
            self.ids[name] = ''
        if tag in ('script', 'link', 'iframe', 'img') or 'src' in attrs:
            self.said.append('<%s> loads something' % tag)
        for value in attrs.values():
            self.references += re.findall(r'url\(#([^)]*)\)', value or '')
        for key in ('href', 'xlink:href'):
            if attrs.get(key, '').startswith('#'):
                self.references.append(attrs[key][1:])
            elif attrs.get(key):
                self.said.append('a link out of the page: ' + attrs[key])
        if tag not in VOID:
            self.open.append((tag, name))

    def handle_startendtag(self, tag, attrs):
        self.handle_starttag(tag, attrs)
        if tag not in VOID:
            self.open.pop()

    def handle_endtag(self, tag):
        if not self.open or self.open[-1][0] != tag:
            self.said.append('</%s> closes %s' % (tag, self.open[-1][0] if self.open else 'nothing'))
        else:
            self.open.pop()

    def handle_data(self, data):
        for _, name in self.open:
            if name:
                self.ids[name] += data + '\n'


def check_page(text, n_plans):
    page = Page(text)
    said = page.said
    for number in range(1, n_plans + 1):
        for name in ('memory', 'lanes', 'peaks', 'units', 'settings', 'facts'):
            if 'plan-%d-%s' % (number, name) not in page.ids:
                said.append('plan %d has no %s' % (number, name))
    for drawing in re.findall(r'<svg.*?</svg>', text, re.S):
        try:
            xml.etree.ElementTree.fromstring(drawing)
        except xml.etree.ElementTree.ParseError as error:
            said.append('a drawing is no XML: %s' % error)
    return said


def check_memory_figure(text, sides):
    figure = Page(text).ids['plan-1-memory']
    said = ['no %s in the drawing' % word for word in
            CATEGORIES + ['allocated', 'active', 'reserved'] if word + '\n' not in figure]
    said += ['no panel of the %s trace' % side for side in sides if side + ',' not in figure]
    # gnuplot draws a label in a box twice, the first time for the box.
    labels = re.findall(r'peak [0-9.]+ [KMG]iB, step \d+, \w+ of unit \S+', figure)
    if len(labels) != 2 * len(sides):
        said.append('not one peak a panel, with its step, phase and unit')
    return said


def check_peaks(text, path):
    trace = Trace(path)
    table = Page(text).ids['plan-1-peaks'].split('\n')
    said = []
    for statistic in ('allocated', 'active', 'reserved'):
        wanted = '%.3f' % (max(row[statistic] for row in trace.memory) / MIB)
        if table[table.index('peak ' + statistic) + 1] != wanted:
            said.append('peak %s is not %s MiB' % (statistic, wanted))
    peak = max(row['allocated'] for row in trace.memory)
    shown = [float(table[table.index(name + ' at the peak') + 1]) for name in CATEGORIES]
    if abs(sum(shown) - peak / MIB) > 0.0005 * len(CATEGORIES):
        said.append('the categories at the peak sum up to %g MiB, not %g' % (sum(shown), peak / MIB))
    return said


def check_shortness(program, folder):
    """Blocks that are alike have one row, and settings that nobody gave none; both say what a trace has."""
    for words in ('predict gpt2-large -n 2 --param-dtype bf16 --cluster a100-node --trace l.trace',
                  'report l.trace -o l.html'):
        subprocess.run([program, *words.split()], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    with open(os.path.join(folder, 'l.html'), encoding='utf-8') as file:
        ids = Page(file.read()).ids
    units = re.findall(r'^(?:layers\.\d+|root)(?: to layers\.\d+)?$', ids['plan-1-units'], re.M)
    counted = sum(1 if ' to ' not in unit else
                  1 + int(unit.rsplit('.', 1)[1]) - int(re.search(r'\d+', unit).group(0)) for unit in units)
    said = [] if counted == 37 and len(units) < 20 else ['rows of units: %s' % units]
    settings = ids['plan-1-settings'].split()
    if 'param_dtype' not in settings or 'lora_alpha' in settings or 'checkpointing' in settings:
        said.append('settings: %s' % settings)
    return said


def check_in_browser(browser, path):
    """The page as a browser holds it, after loading; what it says to its console is a fault."""
    result = subprocess.run([browser, '--headless', '--no-sandbox', '--disable-gpu',
                             '--enable-logging=stderr', '--dump-dom', 'file://' + path],
                            capture_output=True, text=True, timeout=150, check=False)
    said = [line for line in result.stderr.split('\n') if 'CONSOLE' in line]
    said += ['no %s in the DOM' % word for word in CATEGORIES + ['peak ', 'predicted,', 'measured,']
             if word not in result.stdout]
    if result.stdout.count('<svg') != 2 or 'plan-1-memory-gnuplot_plot_' not in result.stdout:
        said.append('the drawings are not in the DOM')
    return said


def check_repeated(program, folder, text, path):
    """What the page says under "To repeat it", done: the same bytes of trace. Path None: measured too."""
    network, strategy, commands = (html.unescape(part) for part in
                                   re.findall(r'<pre[^>]*>(.*?)</pre>', text, re.S)[-3:])
    lines = commands.split('\n')
    with open(os.path.join(folder, shlex.split(lines[0])[2]), 'w', encoding='utf-8') as file:
        file.write(network)
    with open(os.path.join(folder, 'strategy.ini'), 'w', encoding='utf-8') as file:
        file.write(strategy)
    for line in lines[:2 if path else 3]:
        done = subprocess.run([program, *shlex.split(line)[1:]], cwd=folder, capture_output=True, text=True,
                              check=False)
        if done.returncode:
            return [line, done.stderr]
    if not path:
        return []
    with open(path, 'rb') as first, open(os.path.join(folder, 'predicted.trace'), 'rb') as second:
        return [] if first.read() == second.read() else ['another trace: ' + lines[1]]


def check_measured_again(program, folder):
    """The line that measures is of what was measured: of a rehearsal, and of a run on another device."""
    said = []
    def page_of(name):
        subprocess.run([program, 'report', name, '-o', 'page.html'], cwd=folder, check=True)
        with open(os.path.join(folder, 'page.html'), encoding='utf-8') as file:
            text = file.read()
        return text, html.unescape(re.findall(r'<pre[^>]*>(.*?)</pre>', text, re.S)[-1]).split('\n')[2]

    words = ['rehearse', 'gpt-toy', '-n', '8', '--rank', '3', '--cluster', 'a100-node', '--steps', '3',
             '--seed', '5', '--trace', 'r.trace']
    subprocess.run([program, *words], cwd=folder, check=True, stdout=subprocess.DEVNULL)
    text, line = page_of('r.trace')
    if line != ('foreshard rehearse run.plan --rank 3 --cluster a100-node --steps 3 --seed 5 '
                '--trace measured.trace'):
        said.append('of a rehearsal: ' + line)
    failed = check_repeated(program, folder, text, None) if not said else []
    first = Trace(os.path.join(folder, 'r.trace'))
    second = Trace(os.path.join(folder, 'measured.trace')) if not said + failed else first
    if [(row['rank'], row['step'], row['number'], row['allocated']) for row in first.memory] != \
            [(row['rank'], row['step'], row['number'], row['allocated']) for row in second.memory]:
        said.append('another memory: ' + line)
    with open(os.path.join(folder, 'r.trace'), encoding='utf-8') as file:
        text = file.read()
    with open(os.path.join(folder, 'g.trace'), 'w', encoding='utf-8') as file:
        file.write(text.replace('\ndevice host\n', '\ndevice cuda\n').replace('\nrehearsed yes\n', '\n'))
    _, line = page_of('g.trace')
    if line != ('foreshard run run.plan --pace a100-node --device cuda --steps 3 --seed 5 '
                '--trace measured.trace'):
        said.append('of a run on GPUs: ' + line)
    return said + failed


def check_verdicts(program, folder, page):
    """On top of the page stand the verdicts and figures of predict."""
    done = subprocess.run([program, 'predict', 'gpt-toy', '-n', '2', '--cluster', 'this-machine', '--json'], cwd=folder,
                          check=True, capture_output=True, text=True)
    said = json.loads(done.stdout)
    wanted = (r'Fits on this-machine: [0-9.]+ .iB reserved of [0-9.]+ .iB. Trains %s: the rank works for '
              r'([0-9.]+) %% of a step of %.3f ms' % ('well' if said['trains_well'] else 'badly', said['step_ms']))
    return [] if re.search(wanted, page) else ['no ' + wanted]


def main():
    program = os.path.abspath(sys.argv[1])
    tap = Tap()
    if shutil.which('gnuplot') is None:
        tap.skip('report', 'gnuplot is not installed')
        return tap.finish()
    with tempfile.TemporaryDirectory() as folder:
        def report(*words):
            result = subprocess.run([program, 'report', *words], cwd=folder, capture_output=True,
                                    text=True)
            return result.returncode, result.stderr

        def read(name):
            with open(os.path.join(folder, name), encoding='utf-8') as file:
                return file.read()

        subprocess.run([program, 'predict', 'gpt-toy', '-n', '2', '--cluster', 'this-machine',
                        '--trace', 'a.trace'], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        subprocess.run([program, 'predict', 'mlp-toy', '-n', '2', '--cluster', 'this-machine',
                        '--trace', 'c.trace'], cwd=folder, check=True, stdout=subprocess.DEVNULL)
        with open(os.path.join(folder, 'b.trace'), 'w', encoding='utf-8') as file:
            file.write(read('a.trace').replace('side predicted', 'side measured', 1)
                       .replace('title gpt-toy', 'title <gpt> & toy', 1))
        status, err = report('a.trace', '-o', 'one.html')
        tap.case('one trace', [err] if status else check_page(read('one.html'), 1))
        tap.case('both verdicts', check_verdicts(program, folder, read('one.html')))
        tap.case('its curves', check_memory_figure(read('one.html'), ['predicted']))
        tap.case('its peaks', check_peaks(read('one.html'), os.path.join(folder, 'a.trace')))
        status, err = report('b.trace', 'a.trace', '-o', 'two.html')
        tap.case('predicted and measured', [err] if status else check_page(read('two.html'), 1))
        tap.case('both curves', check_memory_figure(read('two.html'), ['predicted', 'measured']))
        tap.case('the verdict', [] if 'step time equal' in read('two.html') else ['is not there'])
        browser = shutil.which('chromium') or shutil.which('google-chrome')
        if browser:
            tap.case('in a browser', check_in_browser(browser, os.path.join(folder, 'two.html')))
        else:
            tap.skip('in a browser', 'neither chromium nor google-chrome is installed')
        with tempfile.TemporaryDirectory() as other:
            tap.case('short', check_shortness(program, other))
        status, err = report('.', '-o', 'all.html')
        tap.case('a folder, two plans', [err] if status else check_page(read('all.html'), 2))
        report('.', '-o', 'again.html')
        tap.case('same bytes', [] if read('all.html') == read('again.html') else ['they differ'])
        with tempfile.TemporaryDirectory() as other:
            asked = os.path.join(other, 'asked.trace')
            subprocess.run([program, 'predict', 'gpt-toy', '-n', '4', '--network-key', 'loss=kernel',
                            '--cluster', 'a100-node', '--every-rank', '--jitter', '7', '--seed', '3', '--slow', 'rank=3:1.5', '--degrade', 'nvlink=0-1:0.3',
                            '--nccl-algo', 'tree', '--no-sharing', '--steps', '5', '--trace', asked],
                           check=True, stdout=subprocess.DEVNULL)
            status, err = report(asked, '-o', os.path.join(other, 'asked.html'))
            tap.case('repeated', [err] if status else
                     check_repeated(program, other, read(os.path.join(other, 'asked.html')), asked))
        with tempfile.TemporaryDirectory() as other:
            tap.case('measured again', check_measured_again(program, other))
        refused = [('a.trace',), ('a.trace', 'a.trace', '-o', 'x.html'), ('no.trace', '-o', 'x.html')]
        slips = {('gpt2', '-o', 'x.html'): 'foreshard predict gpt2 --cluster', ('a.trace', '-o', 'x.pdf'): 'ends in .html',
                 ('gpt2', '-n', '8', '-o', 'x.html'): 'foreshard predict has it, and writes'}
        tap.case('slips', ['%s: %s' % (words, report(*words)) for words, said in slips.items()
                           if report(*words)[0] != 2 or said not in ' '.join(report(*words)[1].split())])
        tap.case('refusals', ['%s is not refused' % (words,) for words in refused
                              if report(*words)[0] != 2 or os.path.exists(folder + '/x.html')])
        status, err = report('a.trace', '-o', 'no/such.html')
        tap.case('no such folder', [] if status == 1 and 'no/such.html' in err else [err])
    return tap.finish()


if __name__ == '__main__':
    sys.exit(main())
