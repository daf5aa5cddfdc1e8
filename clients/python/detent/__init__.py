"""A client of Detent, the durable delayed-task server: schedule tasks and work on due tasks.

    from detent import Client, Worker

    client = Client("http://127.0.0.1:7070")
    client.schedule("orders", {"cancel": 1001}, delay="30d", key="o-1001")
    Worker(client, "orders", lambda task: cancel_order(task.payload)).run()

Start with Client (client.py), then Worker (worker.py). The server's repository describes its
promises and each field in docs/reference/http.md. Standard library only.
"""

from .client import Client
from .errors import (
    Conflict,
    DataLoss,
    DetentError,
    Forbidden,
    Internal,
    InvalidArgument,
    InvalidSignature,
    NotFound,
    ResourceExhausted,
    TooLarge,
    Unauthorized,
    Unavailable,
)
from .values import (
    LeasedTask,
    NewTask,
    Queue,
    Schedule,
    ScheduledTask,
    Task,
    TaskKey,
    TaskPage,
)
from .webhook import verify_webhook
from .worker import Dead, Retry, Worker, WorkTask

__all__ = [
    "Client",
    "Conflict",
    "DataLoss",
    "Dead",
    "DetentError",
    "Forbidden",
    "Internal",
    "InvalidArgument",
    "InvalidSignature",
    "LeasedTask",
    "NewTask",
    "NotFound",
    "Queue",
    "ResourceExhausted",
    "Retry",
    "Schedule",
    "ScheduledTask",
    "Task",
    "TaskKey",
    "TaskPage",
    "TooLarge",
    "Unauthorized",
    "Unavailable",
    "WorkTask",
    "Worker",
    "verify_webhook",
]
