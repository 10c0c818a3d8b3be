"""The classic-control tasks of Gymnasium: one reward-free exploration of each serves several rewards."""
