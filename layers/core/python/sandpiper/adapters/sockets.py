"""Frames to open sockets, through API Gateway."""

from __future__ import annotations

from typing import TYPE_CHECKING

from botocore.exceptions import ClientError, ConnectTimeoutError, ReadTimeoutError

from sandpiper import limits
from sandpiper.adapters.aws import error_code
from sandpiper.ports import Gone, Stuck

if TYPE_CHECKING:
    from mypy_boto3_apigatewaymanagementapi import ApiGatewayManagementApiClient


class ApiGatewaySockets:
    def __init__(self, management: ApiGatewayManagementApiClient) -> None:
        self._management = management

    def send(self, connection_id: str, frame: bytes) -> None:
        if len(frame) > limits.MAX_FRAME_BYTES:
            message = f"a frame of {len(frame)} bytes; {limits.MAX_FRAME_BYTES} is the most"
            raise ValueError(message)
        try:
            self._management.post_to_connection(ConnectionId=connection_id, Data=frame)
        except (ReadTimeoutError, ConnectTimeoutError) as error:
            raise Stuck(connection_id) from error
        except ClientError as error:
            if error_code(error) == "GoneException":
                raise Gone(connection_id) from error
            raise
