"""Names that GT does not have: a checker that accepts one has nothing to ignore, and says so."""

# pyright: reportUnnecessaryTypeIgnoreComment=true, reportUnknownMemberType=false
import gt

print(gt.nonsense)  # type: ignore[attr-defined]
print(gt.compat)  # type: ignore[attr-defined]
print(gt.nn.nonsense)  # type: ignore[attr-defined]
