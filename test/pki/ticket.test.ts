import { createHash } from 'node:crypto'
import { describe, expect, test } from 'vitest'

import {
  formatTicket,
  newTicketSecret,
  parseTicket,
  type Ticket,
  TICKET_CHARACTERS_MAX,
  ticketDigest,
  TicketError,
} from '../../src/pki/secrets/ticket.ts'

const ticket: Ticket = {
  id: 'Ab3-_kdjeiwo',
  secret: newTicketSecret(),
  clusterId: '0190b0c6-0000-7000-8000-000000000000',
  generation: 1,
  trustDomain: 'test.flotilla.internal',
  caPem: '-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n',
  addresses: ['https://ctrl1.example:1280/fabric/v1', 'https://[::1]:1280/fabric/v1'],
  isVoter: true,
  expiresAtMs: 1_700_000_000_000,
}
const text = formatTicket(ticket)

function faultOf(candidate: string): string {
  try {
    parseTicket(candidate)
    return 'none'
  } catch (error) {
    if (!(error instanceof TicketError)) throw error
    return error.fault
  }
}

/** A ticket with any JSON content and a valid checksum, which only a deliberate forgery has. */
function forged(change: object): string {
  const body = text.split('.')[1] ?? ''
  const value = JSON.parse(Buffer.from(body, 'base64url').toString()) as object
  const changed = Buffer.from(JSON.stringify({ ...value, ...change })).toString('base64url')
  const digest = createHash('sha256').update('flotilla-ticket-1.').update(changed).digest()
  return `flotilla-ticket-1.${changed}.${digest.subarray(0, 8).toString('base64url')}`
}

describe('A join ticket', () => {
  test('is one line of text that can be parsed to the same ticket', () => {
    expect(text).toMatch(/^flotilla-ticket-1\.[A-Za-z0-9_.-]+$/)
    expect(parseTicket(text)).toEqual(ticket)
    expect(parseTicket(` ${text}\r\n`)).toEqual(ticket)
    expect(formatTicket(parseTicket(text))).toBe(text)
  })

  test('has a digest of its complete text without surrounding white space', () => {
    const expected = createHash('sha256').update(text).digest()
    expect(Buffer.from(ticketDigest(`${text}\n`))).toEqual(expected)
    expect(Buffer.from(ticketDigest(text.slice(0, -1)))).not.toEqual(expected)
  })

  test('is refused as damaged if any character is missing or changed', () => {
    const start = 'flotilla-ticket-1.'.length
    for (let at = start; at < text.length; at += 7) {
      const other = text[at] === 'A' ? 'B' : 'A'
      expect(faultOf(text.slice(0, at)), `cut at ${at}`).toBe('damaged')
      expect(faultOf(text.slice(0, at) + other + text.slice(at + 1)), `edit at ${at}`).toBe(
        'damaged',
      )
    }
    expect(faultOf(text + text)).toBe('damaged')
    expect(faultOf(`${text}x`)).toBe('damaged')
  })

  test('is distinguished from other text and from a ticket in a newer format', () => {
    for (const other of ['', 'hello', '{}', text.slice(5), 'x'.repeat(100_000)]) {
      expect(faultOf(other)).toBe('no-ticket')
    }
    expect(faultOf(text.replace('ticket-1.', 'ticket-2.'))).toBe('newer')
    expect(() => parseTicket('flotilla-ticket-2.x')).toThrow('format 2')
  })

  test.each([
    ['no secret', { secret: '' }],
    ['a short secret', { secret: 'AAAA' }],
    ['an invalid id', { id: '../x' }],
    ['no address', { addresses: [] }],
    ['an address without TLS', { addresses: ['http://ctrl1.example/fabric/v1'] }],
    ['too many addresses', { addresses: Array(65).fill('https://a/') }],
    ['no CA', { caPem: '' }],
    ['an expiry that is not a number', { expiresAtMs: 'never' }],
    ['an invalid role', { isVoter: 'yes' }],
    ['an invalid trust domain', { trustDomain: 'A b' }],
  ])('is refused if it has %s, despite a valid checksum', (_what, change) => {
    expect(faultOf(forged({}))).toBe('none')
    expect(faultOf(forged(change))).toBe('damaged')
  })

  test('appears in an error message only without its secret', () => {
    const secret = Buffer.from(ticket.secret).toString('base64url')
    expect(() => parseTicket(text.slice(0, -3))).toThrow(TicketError)
    expect(() => parseTicket(text.slice(0, -3))).not.toThrow(secret.slice(0, 8))
  })

  test('can contain twenty CA certificates with RSA keys of 4096 bits', () => {
    const pem = `-----BEGIN CERTIFICATE-----\n${'A'.repeat(2010)}\n-----END CERTIFICATE-----\n`
    const many = { ...ticket, caPem: pem.repeat(20) }
    expect(parseTicket(formatTicket(many))).toEqual(many)
  })

  test('is never created longer than the maximum length that can be read', () => {
    const caPem = ticket.caPem.repeat(1000)
    expect(() => formatTicket({ ...ticket, caPem })).toThrow(
      'identity.ca contains 1000 CA certificates',
    )
    expect(text.length).toBeLessThan(TICKET_CHARACTERS_MAX)
  })
})
