"""man/make-page.py PAGE WORDS VERSION FORESHARD > PAGE.SECTION - a manual page out of the program's own help.

PAGE is foreshard, foreshard-COMMAND or foreshard-strategy; WORDS is the file of what is written by hand.
The synopsis, the options, the examples and the exit status are what --help-all says, so they cannot disagree
with it. What --help-all lacks (an example, an exit status) ends this program with a complaint.

WORDS is roff with the macros of man(7): first what follows the summary in DESCRIPTION, then sections of its
own, which stand between OPTIONS and EXAMPLES."""
import os
import re
import subprocess
import sys

STRATEGY_PAGE = 'foreshard-strategy'
STRATEGY_OPTIONS = 'Strategy options'  # how each of their groups begins in --help-all


class Help:
    """The parts of a command's --help-all."""

    def __init__(self, text):
        blocks = re.split(r'\n\n+', text.strip())
        self.usage = re.sub(r'^Usage:\s*', '', blocks[0])
        self.groups = []  # (title, [(option words, what it does)])
        self.examples, self.exit_status = '', ''
        self.paragraphs, self.notes = [], []  # before and after the options
        for block in blocks[1:]:
            self._take(block)

    def _take(self, block):
        title, _, rest = block.partition('\n')
        if re.match(r'Examples?:$', title):
            self.examples = rest
        elif block.startswith('Exit status: '):
            self.exit_status = ' '.join(block[len('Exit status: '):].split())
        elif title.endswith(':') and rest.startswith('  '):
            self.groups.append((title[:-1], [self._entry(line) for line in self._whole_lines(rest)]))
        else:
            (self.notes if self.groups else self.paragraphs).append(' '.join(block.split()))

    @staticmethod
    def _whole_lines(text):
        """What goes on further in than an option begins belongs to the line before."""
        return re.sub(r'\n {3,}', ' ', text).split('\n')

    @staticmethod
    def _entry(line):
        words, _, help_text = line.strip().partition('  ')
        return words, help_text.strip()

    def strategy(self):
        return [group for group in self.groups if group[0].startswith(STRATEGY_OPTIONS)]


def escape(text):
    """For roff, which reads a dot or a quote at a line's start as a request."""
    text = text.replace('\\', '\\e').replace('-', '\\-').replace('…', '...').replace("'", '\\(aq')
    return re.sub(r'^\.', r'\\\&.', text, flags=re.MULTILINE)


def sentence(text):
    return text[:1].upper() + text[1:] + ('' if text.endswith(('.', '?')) else '.')


def theme(title):
    """"Batch and sequence" of "Strategy options, batch and sequence"."""
    bare = re.sub(r' \(.*\)$', '', title)[len(STRATEGY_OPTIONS):].lstrip(', ')
    return bare[:1].upper() + bare[1:]


def option_lines(group):
    for words, help_text in group[1]:
        name, equals, value = words.partition('=')
        tag = '\\fB' + escape(name).replace(', ', '\\fR, \\fB') + '\\fR'
        yield '.TP\n' + tag + (equals + '\\fI' + escape(value) + '\\fR' if equals else '')
        yield escape(sentence(help_text))


def options(groups):
    yield '.SH OPTIONS'
    for group in groups:
        if len(groups) > 1:
            yield '.SS ' + escape(group[0])
        yield from option_lines(group)


def split_words(text):
    """What belongs to DESCRIPTION, and the sections after it."""
    text = re.sub(r'^\.\\".*\n', '', text, flags=re.MULTILINE).strip()
    at = re.search(r'^\.SH ', text, re.MULTILINE)
    return (text[:at.start()].strip(), text[at.start():].strip()) if at else (text, '')


def see_also(page, text):
    """Every other page that the text names, in order."""
    named = set(re.findall(r'^\.BR (foreshard[\w\\-]*) \((\d)\)', text, re.MULTILINE))
    named = sorted({(name.replace('\\-', '-'), section) for name, section in named} | {('foreshard', '1')})
    named = [(name, section) for name, section in named if name != page]
    yield '.SH SEE ALSO'
    for i, (name, section) in enumerate(named):
        yield '.BR %s (%s)%s' % (escape(name), section, ',' if i + 1 < len(named) else '')


def head(page, section, version, about):
    yield '.\\" Made by man/make-page.py.'
    yield '.TH %s %s "" "foreshard %s" "foreshard"' % (escape(page.upper()), section, version)
    yield '.SH NAME'
    yield '%s \\- %s' % (escape(page), escape(about))


def command_page(page, about, text, words, version):
    shown = Help(text)
    for name in ('usage', 'groups', 'paragraphs', 'examples', 'exit_status'):
        if not getattr(shown, name):
            sys.exit('%s --help-all lacks its %s' % (page.replace('-', ' '), name.replace('_', ' ')))
    description, sections = split_words(words)
    yield from head(page, 1, version, about)
    yield '.SH SYNOPSIS'
    command, _, arguments = shown.usage.partition(' [')
    yield '.B %s\n%s' % (escape(command), escape('[' + arguments))
    yield '.SH DESCRIPTION\n' + '\n.PP\n'.join(escape(p) for p in shown.paragraphs)
    if description:
        yield '.PP\n' + description
    yield from options([group for group in shown.groups if group not in shown.strategy()])
    if shown.strategy():
        yield '.PP\nThe options of a strategy, which go with a NETWORK, stand in\n.BR %s (7).' % escape(STRATEGY_PAGE)
    if sections:
        yield sections
    if shown.notes:
        yield '.SH NOTES\n' + '\n.PP\n'.join(escape(note) for note in shown.notes)
    yield '.SH EXAMPLES\n.nf\n' + escape(shown.examples) + '\n.fi'
    yield '.SH EXIT STATUS'
    for part in shown.exit_status.rstrip('.').split('; '):
        status, _, meaning = part.partition(' ')
        yield '.TP\n.B %s\n%s' % (status, escape(sentence(meaning)))


def strategy_page(text, words, version):
    description, sections = split_words(words)
    yield from head(STRATEGY_PAGE, 7, version, 'every choice about a training run that is not its network')
    yield '.SH DESCRIPTION\n' + description
    yield from options([(theme(title), entries) for title, entries in Help(text).strategy()])
    if sections:
        yield sections


def main_page(commands, words, version):
    description, sections = split_words(words)
    yield from head('foreshard', 1, version, 'predict a sharded training run, and run the identical plan')
    yield '.SH SYNOPSIS\n.B foreshard\n.I COMMAND\n[OPTION]...\n.br\n.B foreshard \\-\\-help\n.br\n.B foreshard \\-\\-version'
    yield '.SH DESCRIPTION\n' + description
    yield '.SH COMMANDS'
    for name, about in commands:
        yield '.TP\n.BR foreshard\\-%s (1)\n%s' % (escape(name), escape(sentence(about)))
    if sections:
        yield sections


def listed(text):
    """The commands of `foreshard --help`, with what it says of each."""
    block = text.split('Commands:\n')[1].split('\n\n')[0]
    return [re.match(r'  (\S+) +(.*)', line).groups() for line in block.split('\n')]


def main():
    page, words_path, version, program = sys.argv[1:]

    def said(*arguments):
        return subprocess.run([program, *arguments], check=True, stdout=subprocess.PIPE, encoding='utf-8',
                              env={**os.environ, 'LC_ALL': 'C.UTF-8'}).stdout

    with open(words_path, encoding='utf-8') as file:
        words = file.read()
    commands = listed(said('--help'))
    if page == 'foreshard':
        lines = list(main_page(commands, words, version))
    elif page == STRATEGY_PAGE:
        lines = list(strategy_page(said('plan', '--help-all'), words, version))
    else:
        command = page[len('foreshard-'):]
        lines = list(command_page(page, dict(commands)[command], said(command, '--help-all'), words, version))
    lines += see_also(page, '\n'.join(lines))
    sys.stdout.reconfigure(encoding='utf-8')
    print('\n'.join(lines))


if __name__ == '__main__':
    main()
