"""The commands by whom they are for; `rewardfree.cli.app` names them."""
