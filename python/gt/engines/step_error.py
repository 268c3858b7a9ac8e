"""The error of a step of a plan."""


class StepError(RuntimeError):
    """A step failed: `step` is its number in the plan; the text is shown to users."""

    __module__ = "gt.engines"

    def __init__(self, step: int, reason: str):
        super().__init__(reason)
        self.step = step
