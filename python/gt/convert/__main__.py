"""`python -m gt.convert`: folders of Hugging Face to checkpoints of GT, and back."""

import argparse
import sys

from gt.convert import ConvertError, Report, convert
from gt.convert.run import DTYPES
from gt.convert.stored import is_checkpoint

_DESCRIPTION = """
Convert a folder of Hugging Face (config.json with model.safetensors, its shards and
index, or pytorch_model.bin) to a checkpoint of GT, or a checkpoint to such a folder.
The source says which way it goes.
"""
_EPILOG = """examples:
  gt convert Qwen3-0.6B qwen3.gt --model examples/models/qwen3.py:Qwen3
  gt convert qwen3.gt Qwen3-again --dtype bfloat16 --max-shard-size 2GB

The status is 0 if all fits, 1 if something does not, and 2 if nothing could be converted.
"""


def main(argv: list[str] | None = None) -> int:
    """Convert; give the exit status."""
    parser = argparse.ArgumentParser(
        prog="gt convert",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("source", help="the folder to convert")
    parser.add_argument("target", help="the folder to write, which is made")
    parser.add_argument(
        "--model",
        metavar="PLACE:NAME",
        help="compare names and shapes with this model, which is made of config.json: "
        "file.py:Name or package.module:Name",
    )
    way = parser.add_mutually_exclusive_group()
    way.add_argument("--to-hf", action="store_true", help="insist that the source is GT's")
    way.add_argument("--to-gt", action="store_true", help="insist that it is Hugging Face's")
    parser.add_argument("--dtype", choices=DTYPES, default="keep", help="what floats become")
    parser.add_argument(
        "--max-shard-size", default="5GB", metavar="SIZE", help="of a file (default 5GB)"
    )
    parser.add_argument(
        "--object",
        default="model",
        metavar="NAME",
        help="which state of a checkpoint with several it is (default model)",
    )
    parser.add_argument(
        "--force", action="store_true", help="replace the weights of a target that is not empty"
    )
    parser.add_argument(
        "--allow-mismatch", action="store_true", help="convert although the model differs"
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
        raise ConvertError(f"{args.source}: --to-hf is given, but it is no checkpoint of GT")
    if args.to_gt and found:
        raise ConvertError(f"{args.source}: --to-gt is given, but it is a checkpoint of GT")


def _tell(report: Report) -> int:
    print(report)
    for what, names in [("carried along", report.carried), ("left out", report.left)]:
        if names:
            print(f"{what}: {', '.join(names)}")
    if report.target is None:
        print(
            "gt convert: the model differs from the source; nothing was written\n"
            "  hint: --allow-mismatch writes the source's tensors as they are",
            file=sys.stderr,
        )
        return 1
    print(f"written: {report.target}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
