"""Drop sessions whose workers compute at the moment, 20 times."""

import gt

for _ in range(20):
    session = gt.Session()
    with session.use():
        x = gt.ones(300, 300)
        for _ in range(20):
            x = x @ x * 0.001
    del session
    del x
print("done")
