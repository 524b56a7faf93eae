import type { TraceEvent, TraceMessage } from './trace-event.ts'

/**
 * Marks messages that are never received, or received for the last time, because a specification
 * that keeps every message is slow to check. Messages without obligations (a heartbeat, an answer
 * with only a term) are left out if no node receives them. Votes and entries are checked even if no
 * node receives them.
 */
export function withoutTheUnheard(events: readonly TraceEvent[]): readonly TraceEvent[] {
  const lastHeard = new Map<string, number>()
  for (const [at, event] of events.entries()) {
    const message = heardBy(event)
    if (message !== null) lastHeard.set(JSON.stringify(message), at)
  }
  const kept: TraceEvent[] = []
  for (const [at, event] of events.entries()) {
    const isSend = event.action === 'Send'
    const message = isSend ? event.message : heardBy(event)
    const last = message === null ? -1 : (lastHeard.get(JSON.stringify(message)) ?? -1)
    if (isSend) {
      const isLost = last < at
      if (!isLost || isBinding(event.message)) kept.push({ ...event, isLost })
    } else if (event.action === 'Ready') {
      if (kept.at(-1)?.server === event.server && isHandedOut(kept.at(-1))) kept.push(event)
    } else if ('isLast' in event) kept.push({ ...event, isLast: last === at })
    else kept.push(event)
  }
  return kept
}

function isHandedOut(event: TraceEvent | undefined): boolean {
  return event?.action === 'Send' || event?.action === 'Write' || event?.action === 'Reset'
}

function heardBy(event: TraceEvent): TraceMessage | null {
  return event.action !== 'Send' && 'message' in event ? event.message : null
}

function isBinding(message: TraceMessage): boolean {
  switch (message.mtype) {
    case 'Heartbeat':
    case 'Answer':
      return false
    case 'RequestVoteResponse':
      return message.mvoteGranted
    case 'AppendEntriesResponse':
      return message.msuccess
    case 'RequestVoteRequest':
    case 'AppendEntriesRequest':
      return true
  }
}
