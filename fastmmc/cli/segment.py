"""The command ``fastmmc segment``."""

import os
from pathlib import Path

import numpy as np

from fastmmc.cli import common
from fastmmc.cli.common import Option
from fastmmc.cli.sources import FILES
from fastmmc.core.files import gathering
from fastmmc.core.words import not_installed
from fastmmc.registry import METHODS
from fastmmc.segmentation import BALANCE, segment, settings_of, usable_methods

# `segment` takes all of these parameters but balance, which is the method's own.
OPTIONS = (
    Option("-k --k N", common.parse_count, "number of segments"),
    Option(
        "--balance BALANCE",
        common.parse_number,
        f"how much two clusters may differ in size, as a share of both (default: {BALANCE})",
    ),
    Option(
        "--sigma SIGMA",
        common.parse_number,
        "width of the Gaussian kernel, in units of 0..255 (default: 500)",
    ),
    Option("--rank RANK", common.parse_rank, "landmarks of the low-rank form (default: 200)"),
    Option(
        "--min-region MIN-REGION",
        common.parse_count,
        "connected regions of fewer pixels are given to a neighbour (default: 0)",
    ),
    *common.RUN_OPTIONS,
)
GAP = 8  # white pixels between two pictures side by side


def add_command(commands):
    """Add ``segment`` to the commands of a parser."""
    parser = commands.add_parser("segment", help="cut a picture into segments")
    parser.set_defaults(run=_segment)
    parser.add_argument(
        "source",
        metavar="PICTURE",
        help="a file that Pillow reads; converted to RGB, with white behind what is transparent",
    )
    common.add_method(parser, parser, usable_methods(), "default: iter-svr", default="iter-svr")
    common.add_options(parser, OPTIONS)
    parser.add_argument(
        "--out", type=Path, metavar="PICTURE", help="write the segments in their mean colours"
    )
    parser.add_argument(
        "--side-by-side", action="store_true", help="put the original on the left of --out"
    )
    parser.add_argument("--json", action="store_true", help="print one JSON object")


def _segment(args):
    params = _segment_params(args)
    if args.out is not None:
        Image, _ = _import_pillow()
        known = sorted(e for e, name in Image.registered_extensions().items() if name in Image.SAVE)
        common.check_output(args.out, known, "a picture's name", args.source)
    elif args.side_by_side:
        raise ValueError("--side-by-side needs --out, the picture to write")
    image = _read_picture(args.source)
    run = common.run_solver(segment, image, params, OPTIONS)
    if args.out is not None:
        _write_segments(args.out, run.result, image if args.side_by_side else None)
    _print_result(args, run)


def _segment_params(args):
    given = common.given_options(args, OPTIONS)
    if not hasattr(args, "k"):
        raise ValueError("--k is missing: segment needs the number of segments")
    own = settings_of(METHODS[args.solver])
    common.refuse_lacking(args.solver, given, [one for one in OPTIONS if one.name in own])
    params = {option.name: value for option, value in given.items()}
    if "balance" in params:
        params["method_params"] = {"balance": params.pop("balance")}
    return {"method": args.solver, **params}


def _import_pillow():
    try:
        from PIL import Image, ImageOps
    except ImportError as error:
        raise not_installed("pictures need Pillow", "pillow") from error
    return Image, ImageOps


def _read_picture(source):
    """Return the first frame of a picture as it is shown, (H, W, 3) uint8."""
    Image, ImageOps = _import_pillow()
    if os.path.isdir(source):
        raise ValueError(f"{source} is a folder; give a file")
    try:
        with Image.open(source) as file:
            return _to_rgb(Image, ImageOps.exif_transpose(file))
    except Exception as error:  # what is broken shows in many kinds of errors, by the format
        if isinstance(error, OSError) and error.filename is not None:
            raise
        is_table = Path(source).suffix.lower() in FILES
        advice = "; for the rows of a table there is fastmmc cluster" if is_table else ""
        raise ValueError(f"{source} cannot be read as a picture: {error}{advice}") from error


def _to_rgb(Image, picture):
    """Return the pixels in 0..255, with white behind what is transparent."""
    if picture.mode == "F" or picture.mode.startswith("I"):
        values = np.asarray(picture)
        if picture.mode == "F" or values.min() < 0 or values.max() > 65535:
            raise ValueError("its pixels have 32 bits; convert them to 8 or 16 bits first")
        picture = Image.fromarray((values // 257).astype(np.uint8))
    if picture.has_transparency_data:
        picture = picture.convert("RGBA")
        behind = Image.new("RGBA", picture.size, "white")
        picture = Image.alpha_composite(behind, picture)
    return np.asarray(picture.convert("RGB"))


def _write_segments(path, result, original):
    """Write the segments in their mean colours, beside the original if there is one."""
    Image, _ = _import_pillow()
    picture = np.rint(result.paint()).astype(np.uint8)
    if original is not None:
        between = np.full((len(picture), GAP, 3), 255, dtype=np.uint8)
        picture = np.hstack([original, between, picture])
    with gathering(path) as file:
        Image.fromarray(picture).save(file)  # the format is that of the file's name


def _print_result(args, run):
    result = run.result
    height, width = result.label_image.shape
    report = run.report() | {
        "method": args.solver,
        "source": args.source,
        "width": width,
        "height": height,
        "colors": result.colors.tolist(),
        "params": result.params,
    }
    headline = f"{args.solver} on {args.source}: {width} x {height} pixels, {report['k']} segments"
    colours = " ".join("#" + bytes(map(round, color)).hex() for color in report["colors"])
    common.print_report(report, headline, run.rows() | {"colours": colours}, args.json)
