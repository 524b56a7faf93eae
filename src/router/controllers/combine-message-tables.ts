import type { ControlMessageHandler, ControlMessageTable } from './control-connection.ts'

/**
 * Combines several tables. If more than one table handles a message type, each of them receives the
 * message.
 */
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
