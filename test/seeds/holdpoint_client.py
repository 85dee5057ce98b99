"""What the Python program of seed 002 imports: send a message to an agent, get the task. Standard library only."""
import json
import urllib.request


class A2AClient:
    def __init__(self, url, token):
        self.url = url.rstrip("/")
        self.token = token

    def send_message(self, agent, message):
        request = urllib.request.Request(
            f"{self.url}/v1/agents/{agent}/message:send",
            data=json.dumps({"request": message}).encode(),
            headers={"Content-Type": "application/json", "Authorization": f"Bearer {self.token}"},
            method="POST",
        )
        with urllib.request.urlopen(request) as response:
            return json.load(response)["task"]
