"""Print the session's name. Arguments: the server, or "-" for this process, and a name."""

import sys

import gt

if __name__ == "__main__":
    where, *name = sys.argv[1:]
    address = None if where == "-" else where
    with gt.Session(address, name=name[0] if name else None) as session:
        gt.ones(2).sum().item()
        (own,) = (one for one in gt.status().sessions if one["name"] == session.name)
        print(own["name"], own["program"], sep="\n")
