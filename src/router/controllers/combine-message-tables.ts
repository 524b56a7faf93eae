import type { ControlMessageHandler, ControlMessageTable } from './control-connection.ts'

/** Combines several tables. A message is passed to each table that handles the message's type. */
export function combineMessageTables(tables: readonly ControlMessageTable[]): ControlMessageTable {
  const all = new Map<number, ControlMessageHandler>()
  for (const [contentType, handler] of tables.flatMap((table) => [...table])) {
    const before = all.get(contentType)
    all.set(
      contentType,
      before === undefined
        ? handler
        : (connection, message) => {
            before(connection, message)
            handler(connection, message)
          },
    )
  }
  return all
}
