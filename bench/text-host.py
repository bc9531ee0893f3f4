#!/usr/bin/env python3
"""What a training loop's host pays to make tokens of text: SentencePiece, as Llama 2's tokenizer is (BPE, 32000 words).

    python3 bench/text-host.py TEXT...

By hand, with sentencepiece 0.2; no GPU. It makes a vocabulary of the texts, cuts them into documents of 2200 letters, as C4's
are in the mean, and prints the least time of several rounds for a token, on one core."""
import os
import sys
import tempfile
import time

import sentencepiece

WORDS, LETTERS, DOCUMENTS, ROUNDS = 32000, 2200, 1500, 5


def documents(lines):
    """Lines put together until they are as long as a document."""
    text = ''
    for line in lines:
        text += line
        if len(text) >= LETTERS:
            yield text
            text = ''


def main(paths):
    lines = [line for path in paths for line in open(path, encoding='utf-8', errors='replace') if line.strip()]
    with tempfile.TemporaryDirectory() as folder:
        prefix = os.path.join(folder, 'words')
        sentencepiece.SentencePieceTrainer.train(
            sentence_iterator=iter(lines), model_prefix=prefix, vocab_size=WORDS, model_type='bpe', byte_fallback=True,
            split_digits=True, hard_vocab_limit=False, minloglevel=2)
        tokenizer = sentencepiece.SentencePieceProcessor(model_file=prefix + '.model')
    texts = list(documents(lines))[:DOCUMENTS]
    least, tokens = float('inf'), 0
    for _ in range(ROUNDS):
        begin, tokens = time.process_time(), 0
        for text in texts:
            tokens += len(tokenizer.encode(text))
        least = min(least, time.process_time() - begin)
    print('%d documents, %d tokens, %.2f letters each: %.2f us a token' % (
        len(texts), tokens, sum(map(len, texts)) / tokens, 1e6 * least / tokens))


if __name__ == '__main__':
    if len(sys.argv) < 2:
        sys.exit(__doc__)
    main(sys.argv[1:])
