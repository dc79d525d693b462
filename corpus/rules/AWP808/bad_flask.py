"""Flask's debugging server in front of a model."""

import torch
from flask import Flask

app = Flask(__name__)
model = torch.nn.Linear(8, 8).to("cuda").eval()

if __name__ == "__main__":
    app.run(host="0.0.0.0", debug=True)  # expect: AWP808
