"""Use a tensor of a session that has ended; print the errors, and a value of the next session."""

import gt

x = gt.ones(3)
gt.disconnect()
gt.gpu_workers(1)
for act in (lambda: (x + 1).tolist(), lambda: (x + gt.ones(3)).tolist()):
    try:
        act()
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])
print(gt.ones(2).tolist())
