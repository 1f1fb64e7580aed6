"""What a witness is built for: functions, their claims and grids; vocabularies and pairs."""
