import { assert, requirePresent } from '../../src/lib/assert.ts'
import type { Entry, Index, Message, MessageBody, NodeId, Position } from '../../src/raft/types.ts'
import { FORMED_MS, text } from './members.ts'

/** Parses a message in the notation of a script's trace. */
export function parseMessage(from: NodeId, to: NodeId, type: string, rest: string): Message {
  const words = rest.replace(/entries=\[.*\]/, '').split(/\s+/)
  const value = (name: string): string => {
    const word = words.find((one) => one.startsWith(`${name}=`))
    return requirePresent(word, `a ${type} says ${name}`).slice(name.length + 1)
  }
  const body = parseBody(type, rest, words, value)
  return { ...body, from, to, term: Number(value('term')) } as Message
}

function parseBody(
  type: string,
  rest: string,
  words: readonly string[],
  value: (name: string) => string,
): MessageBody {
  const commit = (): Index => Number(value('commit'))
  const readSequence = (): number => Number(value('read'))
  const pre = words.includes('pre')
  switch (type) {
    case 'voteRequest':
      return { type, pre, last: position(value('last')), transfer: words.includes('transfer') }
    case 'voteResponse':
      return { type, pre, granted: words.includes('granted') }
    case 'appendRequest': {
      const entries = parseEntries(rest)
      return { type, previous: position(value('previous')), commit: commit(), entries }
    }
    case 'appendResponse':
      return parseAppendResponse(words, value)
    case 'heartbeatRequest':
      return { type, commit: commit(), readSequence: readSequence() }
    case 'heartbeatResponse':
      return { type, readSequence: readSequence(), clockMs: Number(value('clock')) }
    case 'commitNotice':
      return { type, commit: commit() }
    case 'timeoutNow':
      return { type }
  }
  assert(false, `no such message: ${type}`)
}

function parseAppendResponse(
  words: readonly string[],
  value: (name: string) => string,
): MessageBody {
  const type = 'appendResponse'
  const success = words.some((word) => word.startsWith('match='))
  if (success) {
    const hint = { term: 0, index: 0 }
    return { type, success, matchIndex: Number(value('match')), hint, rejectedIndex: 0 }
  }
  const [rejectedIndex, hint] = [Number(value('refused')), position(value('hint'))]
  return { type, success, matchIndex: 0, hint, rejectedIndex }
}

function parseEntries(rest: string): readonly Entry[] {
  return [...rest.matchAll(/(\d+\/\d+) "([^"]*)"/g)].map(([, at = '', body = '']) => {
    return { ...position(at), timeMs: FORMED_MS, type: 'command', data: text(body) }
  })
}

function position(word: string): Position {
  const [term = 0, index = 0] = word.split('/').map(Number)
  return { term, index }
}
