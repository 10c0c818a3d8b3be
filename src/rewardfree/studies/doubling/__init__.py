"""Plans from ever more data of one exploration: do returns fall when data double?"""
