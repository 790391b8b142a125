// Pictures of tables that have one, by the table's key.
function pictures() {
  return [];
}
