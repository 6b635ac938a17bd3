"""Workers killed beside others that live: how fast their batches are taken over, and what is lost."""
