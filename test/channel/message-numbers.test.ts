import { readdirSync, readFileSync } from 'node:fs'
import { join, relative, resolve } from 'node:path'
import { parseAst } from 'rolldown/parseAst'
import { expect, test } from 'vitest'

import * as circuitRequests from '../../src/channel/messages/circuit-requests.ts'
import * as circuits from '../../src/channel/messages/circuits.ts'
import * as clients from '../../src/channel/messages/clients.ts'
import * as control from '../../src/channel/messages/control.ts'
import * as dialErrors from '../../src/channel/messages/dial-error.ts'
import * as edge from '../../src/channel/messages/edge.ts'
import * as limits from '../../src/channel/messages/limits.ts'
import * as links from '../../src/channel/messages/links.ts'
import * as model from '../../src/channel/messages/model.ts'
import * as payload from '../../src/channel/messages/payload.ts'
import * as peerData from '../../src/channel/messages/peer-data.ts'
import * as reports from '../../src/channel/messages/reports.ts'
import * as routeTrace from '../../src/channel/messages/route-trace.ts'
import * as terminators from '../../src/channel/messages/terminators.ts'
import * as numbers from '../../src/channel/numbers.ts'

const root = resolve(import.meta.dirname, '../..')

type Table = Readonly<Record<string, number>>

const { channelContentType, channelHeaderKey } = numbers
const { controlHeaderKey, controlContentType, legacyHelloHeaderKey } = control
const { edgeHeaderKey, edgeContentType } = edge
const { circuitControlHeaderKey, payloadHeaderKey, circuitContentType } = payload
const { circuitSuccessHeaderKey, controlErrorHeaderKey } = circuitRequests
const { circuitRequestHeaderKey, circuitResponseHeaderKey } = circuitRequests
const { routeResultHeaderKey } = circuits
const { linkHeaderKey } = links
const { peerDataKey } = peerData

const contentTypes = { channelContentType, controlContentType, edgeContentType, circuitContentType }

const headers = {
  channelHeaderKey,
  controlHeaderKey,
  legacyHelloHeaderKey,
  circuitRequestHeaderKey,
  circuitResponseHeaderKey,
  circuitSuccessHeaderKey,
  controlErrorHeaderKey,
  routeResultHeaderKey,
  edgeHeaderKey,
  payloadHeaderKey,
  circuitControlHeaderKey,
  linkHeaderKey,
  peerDataKey,
}

/** Tables of numbers that are neither content types nor header keys. */
const otherTables: readonly string[] = [
  'connectionTypeCode',
  'dialErrorCodes',
  'edgeErrorCode',
  'edgeFlag',
  'messageContentLimits',
  'payloadFlag',
  'reflectedHeaderKeys',
  'retryHint',
  'terminatorPrecedence',
]

/** Names that share a number, joined, in the order of the numbers. */
function shared(tables: Readonly<Record<string, Table>>): Record<string, string[]> {
  const names = new Map<number, string[]>()
  for (const [table, rows] of Object.entries(tables)) {
    for (const [name, number] of Object.entries(rows)) {
      names.set(number, [...(names.get(number) ?? []), `${table}.${name}`])
    }
  }
  return Object.fromEntries([...names].filter(([, some]) => some.length > 1))
}

test('no content type number has two names in any channel', () => {
  expect(shared(contentTypes)).toEqual({})
})

test('no header number has two names in the same table of numbers', () => {
  for (const [name, table] of Object.entries(headers)) {
    expect(shared({ [name]: table }), name).toEqual({})
  }
})

test('two headers of the control channel have the same number only if OpenZiti uses this number for both', () => {
  const tables = {
    controlHeaderKey,
    circuitRequestHeaderKey,
    circuitResponseHeaderKey,
    circuitSuccessHeaderKey,
    controlErrorHeaderKey,
    routeResultHeaderKey,
  }
  expect(shared(tables)).toEqual({
    10: ['circuitRequestHeaderKey.peerData', 'circuitResponseHeaderKey.peerData'],
    11: ['circuitRequestHeaderKey.sessionToken', 'circuitResponseHeaderKey.circuitId'],
    12: ['circuitRequestHeaderKey.fingerprints', 'circuitResponseHeaderKey.address'],
    13: ['circuitRequestHeaderKey.terminatorInstanceId', 'circuitResponseHeaderKey.tags'],
    1014: ['controlHeaderKey.syncStrategyState', 'controlErrorHeaderKey.errorCode'],
    1026: ['controlHeaderKey.routerDataModelSubscriptionId', 'controlErrorHeaderKey.circuitId'],
  })
})

test('headers that can occur in one message have different numbers', () => {
  expect(shared({ routeResultHeaderKey, peerDataKey }), 'headers of a route result').toEqual({})
  expect(shared({ circuitSuccessHeaderKey, peerDataKey }), 'headers of a circuit success').toEqual(
    {},
  )
  expect(
    shared({ payloadHeaderKey, circuitControlHeaderKey }),
    'headers of a circuit message',
  ).toEqual({})
  expect(
    shared({ edgeHeaderKey, payloadHeaderKey, channelHeaderKey }),
    'headers of a client message',
  ).toEqual({})
})

test('this test reads each table of numbers in src/channel/messages', () => {
  const modules = [
    circuitRequests,
    circuits,
    clients,
    control,
    dialErrors,
    edge,
    limits,
    links,
    model,
    payload,
    peerData,
    reports,
    routeTrace,
    terminators,
    numbers,
  ]
  const files = readdirSync(join(root, 'src/channel/messages'))
  expect(files.length + 1, 'a file of messages is missing from the list of modules').toBe(
    modules.length,
  )
  const isTable = (value: unknown): boolean =>
    typeof value === 'object' &&
    value !== null &&
    Object.values(value).length > 0 &&
    Object.values(value).every((each) => typeof each === 'number')
  const tables = modules
    .flatMap((one) => Object.entries(one as Record<string, unknown>))
    .filter(([, value]) => isTable(value) && !Array.isArray(value))
    .map(([name]) => name)
  const known = [...Object.keys(contentTypes), ...Object.keys(headers), ...otherTables]
  expect(tables.sort()).toEqual(known.sort())
})

interface Tree {
  readonly type: string
  readonly start: number
  readonly [key: string]: unknown
}

const isTree = (value: unknown): value is Tree =>
  typeof value === 'object' && value !== null && 'type' in value && 'start' in value

/** Numbers in one file that are used as a content type or a header key. */
function numbersIn(file: string, text: string): string[] {
  const found: string[] = []
  const hasTables = /^src\/channel\/(messages\/[^/]+|numbers)\.ts$/.test(file)
  const report = ({ start }: Tree, what: string): void => {
    found.push(`${file}:${text.slice(0, start).split('\n').length}: ${what}`)
  }
  const visit = (node: Tree, parents: readonly Tree[]): void => {
    if (numberOf(node) !== null && !(hasTables && isOfTable(parents))) {
      const what = judged(text, node, parents)
      if (what !== null) report(node, what)
    }
    for (const child of Object.values(node).flat()) {
      if (isTree(child)) visit(child, [node, ...parents])
    }
  }
  visit(parseAst(text, { lang: 'ts' }) as unknown as Tree, [])
  return found
}

const tableNames = new Set([...Object.keys(contentTypes), ...Object.keys(headers), ...otherTables])

const nameOf = (node: unknown): string =>
  isTree(node) ? String(node['name'] ?? nameOf(node['property'] ?? node['key'] ?? null)) : ''

/** Whether the number is an entry of one of the tables. */
function isOfTable(parents: readonly Tree[]): boolean {
  const declared = parents.find(({ type }) => type === 'VariableDeclarator')
  return declared !== undefined && tableNames.has(nameOf(declared['id']))
}

function numberOf(node: Tree): number | null {
  const { value } = node
  return node.type === 'Literal' && typeof value === 'number' ? value : null
}

/** Names of quantities and limits, and of close codes of web sockets (RFC 6455, section 7.4). */
const measures =
  /(CLOSE_CODE|Ms|Max|Min|Bytes|Burst|Interval|_MS|_MAX|_MIN|_BYTES|_AT_ONCE|SLICE|SLICE_CHECKS|KIB)$/

/** Content types and header keys are below 65,536, and unlike bit masks are not written in hex. */
const isInRange = (number: number, node: Tree): boolean =>
  number >= 1000 && number < 65_535 && !String(node['raw']).startsWith('0x')

const calls = /^(get|has|set|read(Text|Flag|Int32|Uint16|Uint64|Mask|TextList|BytesMap)|bound)$/
const values = /^encode[A-Z]/
const protocolNames = /(header|content_?type|message_?type|peer_?(data_?)?key)/i

function judged(text: string, node: Tree, [parent, ...above]: readonly Tree[]): string | null {
  const number = numberOf(node) ?? 0
  if (parent === undefined) return null
  const name = nameOf(parent['id'] ?? parent['key'])
  switch (parent.type) {
    case 'VariableDeclarator':
    case 'Property': {
      const table = above.find(({ type }) => type === 'VariableDeclarator')
      const isNamed = [name, nameOf(table?.['id'])].some(
        (each) => protocolNames.test(each) && !measures.test(each),
      )
      if (isNamed) return `${name} is the number ${number}`
      return isInRange(number, node) && !measures.test(name)
        ? `${name} is the number ${number}`
        : null
    }
    case 'SwitchCase':
      return isInRange(number, node) ? `case ${number}` : null
    case 'BinaryExpression': {
      const isEqual = ['===', '!=='].includes(String(parent['operator']))
      const sides = [nameOf(parent['left']), nameOf(parent['right'])]
      return isEqual && sides.some((side) => protocolNames.test(side))
        ? `compares with ${number}`
        : null
    }
    case 'CallExpression': {
      const called = nameOf(parent['callee'])
      const [first, second] = parent['arguments'] as Tree[]
      const isOfHeaders = text.slice(parent.start, node.start).toLowerCase().includes('headers')
      const isKey = called === 'bound' ? first === node : isOfHeaders
      return calls.test(called) && isKey && (first === node || second === node)
        ? `${called}(${number})`
        : null
    }
    case 'ArrayExpression': {
      const [first, second] = parent['elements'] as Tree[]
      const isHeader =
        first === node && second?.type === 'CallExpression' && values.test(nameOf(second['callee']))
      return isHeader || isInRange(number, node) ? `the number ${number} in a list` : null
    }
    default:
      return null
  }
}

const rooms = ['channel', 'fabric', 'overlay', 'router', 'tunnel']

test('no file outside of src/channel/messages defines the number of a content type or a header', () => {
  const found = rooms.flatMap((room) =>
    readdirSync(join(root, 'src', room), { recursive: true, encoding: 'utf8' })
      .filter((name) => name.endsWith('.ts'))
      .map((name) => join(root, 'src', room, name))
      .flatMap((file) => numbersIn(relative(root, file), readFileSync(file, 'utf8'))),
  )
  expect(found, 'put the number into a table of src/channel/messages').toEqual([])
})

test.for([
  'const indexHeader = 1025',
  'const header = { terminatorId: 1022, isPassed: 12 } as const',
  'export const someMessage = { ping: 1, fault: 1004 } as const',
  'const old = new Set([20_400, 20_402])',
  'send({ channelContentType: 3 })',
  'if (message.channelContentType === 20_002) close()',
  'switch (type) { case 60_786: close() }',
  "const text = readText(headers, 12) ?? ''",
  'const key = message.headers.get(10)',
  "const headers = new Map([[18, encodeText('x')]])",
])('the check for literal message numbers finds the one in %s', (line) => {
  expect(numbersIn('a.ts', line)).not.toEqual([])
})
