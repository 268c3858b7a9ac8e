"""The command `python -m gt.convert`: Hugging Face folders to GT checkpoints, and back."""

import argparse
import sys

from gt.convert import ConvertError, Report, convert
from gt.convert.run import DTYPES
from gt.convert.stored import is_checkpoint

_DESCRIPTION = """
Convert a Hugging Face folder (config.json with model.safetensors, its shards and
index, or pytorch_model.bin) to a GT checkpoint, or a checkpoint to such a folder.
The kind of the source determines the direction.
"""
_EPILOG = """examples:
  gt convert Qwen3-0.6B qwen3.gt --model examples/models/qwen3.py:Qwen3
  gt convert qwen3.gt Qwen3-again --dtype bfloat16 --max-shard-size 2GB

The exit status is 0 after a conversion, 1 if the model does not match (nothing is
written), and 2 on other errors.
"""


def main(argv: list[str] | None = None) -> int:
    """Run the command and return its exit status."""
    parser = argparse.ArgumentParser(
        prog="gt convert",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", help="the folder to convert")
    parser.add_argument("target", help="the folder to create")
    parser.add_argument(
        "--model",
        metavar="PLACE:NAME",
        help="compare names and shapes with this model, which is constructed from config.json: "
        "file.py:Name or package.module:Name",
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--to-hf", action="store_true", help="fail unless the source is GT's")
    way.add_argument("--to-gt", action="store_true", help="fail if the source is GT's")
    parser.add_argument(
        "--dtype", choices=DTYPES, default="keep", help="the dtype of floating-point tensors"
    )
    parser.add_argument(
        "--max-shard-size",
        default="5GB",
        metavar="SIZE",
        help="the maximum size of a file (default 5GB)",
    )
    parser.add_argument(
        "--object",
        default="model",
        metavar="NAME",
        help="the state to convert, if a checkpoint has several (default model)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the weights in a target that is not empty"
    )
    parser.add_argument(
        "--allow-mismatch", action="store_true", help="convert even if the model does not match"
    )
    args = parser.parse_args(argv)
    try:
        _check_way(args)
        report = convert(
            args.source,
            args.target,
            model=args.model,
            dtype=args.dtype,
            max_shard_size=args.max_shard_size,
            force=args.force,
            allow_mismatch=args.allow_mismatch,
            member=args.object,
        )
    except ConvertError as error:
        print(f"gt convert: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    return _tell(report)


def _check_way(args: argparse.Namespace) -> None:
    found = is_checkpoint(args.source)
    if args.to_hf and not found:
        raise ConvertError(f"{args.source}: --to-hf was given, but it is not a GT checkpoint")
    if args.to_gt and found:
        raise ConvertError(f"{args.source}: --to-gt was given, but it is a GT checkpoint")


def _tell(report: Report) -> int:
    print(report)
    for what, names in [("carried along", report.carried), ("left out", report.left)]:
        if names:
            print(f"{what}: {', '.join(names)}")
    if report.target is None:
        print(
            "gt convert: the model does not match the source; nothing was written\n"
            "  hint: --allow-mismatch writes the source's tensors anyway",
            file=sys.stderr,
        )
        return 1
    print(f"written: {report.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
