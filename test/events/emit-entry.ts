import { EmittedEvent } from '../../src/events/emitted-event.ts'
import type { EventBus } from '../../src/events/event-bus.ts'
import type { NewEvent } from '../../src/events/event-field.ts'

/** Emits the events of one log entry. */
export function emitEntry(bus: EventBus, index: number, events: readonly NewEvent[]): void {
  const { generation, selfId } = bus
  const slots = events.map((event, at) => {
    const position = { generation, index, sequence: at + 1 }
    return new EmittedEvent(event, position, true, selfId)
  })
  bus.emitEntry({ slots: () => slots })
}
