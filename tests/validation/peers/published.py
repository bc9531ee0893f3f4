"""Published runs as other predictors can be asked for them: the rows of ../train_*.csv that say a network's shape, with
the settings under which foreshard predicts them (../rows.csv)."""

import configparser
import csv
import pathlib

TABLES = pathlib.Path(__file__).resolve().parent.parent
GIB = 2**30
SHAPE = {"layers": "layers", "width": "d_model", "heads": "heads", "kv_heads": "kv_heads", "ffn": "d_ff", "vocab": "vocab",
         "seq": "seq_len", "batch": "micro_batch"}


def settings_of(words):
    return dict(word.split("=", 1) for word in words.split() if "=" in word)


def shape_of(row, settings):
    """Whole numbers by name; those that neither the row nor its settings say are missing."""
    shape = {name: int(float(row[column])) for name, column in SHAPE.items()
             if row.get(column) and row[column].replace(".", "", 1).isdigit()}
    for name, key in (("seq", "seq"), ("batch", "micro_batch")):
        if key in settings:
            shape[name] = int(settings[key])
    return shape


def runs():
    """Of each row that foreshard predicts: table, line, settings, cluster, shape, and the row as it is."""
    with open(TABLES / "rows.csv") as file:
        entries = [entry for entry in csv.DictReader(file) if entry["in_or_out"] == "in"]
    tables = {}
    for entry in entries:
        name = entry["file"]
        if name not in tables:
            with open(TABLES / name) as file:
                lines = csv.DictReader(file)
                tables[name] = {lines.line_num: row for row in lines}
        row = tables[name][int(entry["line"])]
        settings = settings_of(entry["settings"])
        yield {"file": name, "line": int(entry["line"]), "label": entry["row"], "cluster": entry["cluster"],
               "settings": settings, "shape": shape_of(row, settings), "row": row}


def product_dtype(settings):
    """What matrix products are computed in."""
    asked = [settings.get(key) for key in ("param_dtype", "autocast", "model_dtype")]
    return next((dtype for dtype in asked if dtype in ("bf16", "fp16")), "fp32")


def device_of_file(name):
    """What a cluster's file says of its GPU, and what one that it is like says."""
    file = configparser.ConfigParser(inline_comment_prefixes=("#",))
    file.read(TABLES.parent.parent / "models/clusters" / (name + ".ini"))
    like = file["cluster"].get("like")
    return {**(device_of_file(like) if like else {}), **(file["device"] if "device" in file else {})}


def device_of(run):
    """The numbers of its GPU: of the cluster's file, where its settings say no other."""
    own = {key.removeprefix("device."): value for key, value in run["settings"].items() if key.startswith("device.")}
    return {**device_of_file(run["cluster"]), **own}
