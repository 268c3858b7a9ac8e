"""What `gt.watch()` shows: the workers and one's own sessions at one moment."""

import time
from typing import Any

from gt.session.status import Status
from gt.session.status_rows import SessionRow


class Watched(Status):
    """A status without the sessions of others.

    Args:
        report: the status as `_gt.get_status` returns it.
        session: the name of the session that watches.
    """

    #: Whether it is updated, and why it no longer is.
    state = ""

    def __init__(self, report: dict[str, Any], session: str):
        super().__init__(report)
        self._of_all = len(self.sessions)
        self._clock = time.strftime("%H:%M:%S")
        self.sessions = own_sessions(self.sessions, session)
        self.users, self.teams = [], []

    def _heading(self) -> str:
        count = len(self.sessions)
        whose = f"{count:,} of {self._of_all:,} sessions {'is' if count == 1 else 'are'} yours"
        heading = f"{super()._heading()}, {whose}, at {self._clock}"
        return f"{heading} ({self.state})" if self.state else heading

    def bundle(self) -> dict[str, str]:
        """Return it as text and as HTML, by MIME type."""
        return {"text/plain": repr(self), "text/html": self._repr_html_()}


def own_sessions(sessions: list[SessionRow], name: str) -> list[SessionRow]:
    """Return the sessions of the user who has one.

    Those are the sessions with the user's key; where that is no user's, those without one whose
    clients run under the same login.

    Args:
        sessions: all sessions.
        name: the name of a session. If there is none of the name, as after a server has started
            again, all are returned.
    """
    mine = next((session for session in sessions if session["name"] == name), None)
    if mine is None:
        return sessions
    return [session for session in sessions if _owner(session) == _owner(mine)]


def _owner(session: SessionRow) -> tuple[str, str]:
    """Return the user, or without one the login."""
    return (session["user"], "" if session["user"] else session["login"])
