import type { ComponentChildren } from 'preact'

import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { CopyId } from '../../controls/copy.tsx'
import { Icon } from '../../controls/icon.tsx'
import { Badge } from '../../controls/status.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { DAY_MS } from '../../controls/expiry.ts'
import { expiryText } from '../../controls/expiry-input.tsx'
import { certificateEnd } from './certificate-end.ts'
import { isObject } from './json-values.ts'
import { lastSeenTime } from './last-seen.ts'
import { findKindAtPath } from './kinds.ts'
import { IdentityState, OnlineState, RouterState, StateBadge } from './record-state.tsx'
import { HostState } from './service-hosts.tsx'
import { attributeWithExpiryText } from './role-expiry-input.tsx'

const SHOWN_ITEMS = 3
const TIME = /^\d{4}-\d{2}-\d{2}T[\d:.]+Z$/

/** Badges for states that have the same meaning for every kind. */
const states: Readonly<
  Record<
    string,
    { readonly on: readonly ['good' | 'warn' | 'plain', string]; readonly off: string }
  >
> = {
  isOnline: { on: ['good', texts.cell.online], off: texts.cell.offline },
  hasApiSession: { on: ['good', texts.cell.loggedIn], off: '' },
  disabled: { on: ['warn', texts.cell.disabled], off: '' },
}

interface RowCell {
  readonly row: Readonly<Record<string, unknown>>
  readonly name: string
  /** Called with a role attribute to filter the list by. */
  readonly onAttribute?: (attribute: string) => void
}

/** Columns whose cells need more than one field of the record. */
const rowCells: Readonly<Record<string, (row: RowCell['row']) => ComponentChildren>> = {
  hasEdgeRouterConnection: (row) => <IdentityState row={row} />,
  isOnline: (row) => <RouterState row={row} />,
  hosts: (row) => (isObject(row['hosts']) ? <HostState row={row} /> : ''),
  onlineSince: ({ onlineSince, offlineSince }) => {
    const since = onlineSince ?? offlineSince
    return typeof since === 'string' ? <Time at={since} /> : ''
  },
  lastSeenAt: (row) => <LastSeen at={lastSeenTime(row)} />,
  sdkInfo: (row) => clientDescription(row),
  enabled: ({ enabled }) =>
    typeof enabled === 'boolean' ? <StateBadge state={enabled ? 'enabled' : 'disabled'} /> : '',
  isVerified: ({ isVerified }) => (
    <StateBadge state={isVerified === true ? 'verified' : 'unverified'} />
  ),
  versionInfo: ({ versionInfo }) => {
    const version = memberText(versionInfo, 'version')
    return version === '' ? '' : <span title={texts.cell.reportedVersion}>{version}</span>
  },
  supportedProtocols: (row) => clipped(clientAddresses(row)),
  expiresAt: (row) => <ExpiryCell row={row} />,
  primary: ({ primary }) => <span class="clip">{allowedMethods(primary)}</span>,
  secondary: ({ secondary }) => requiredInAddition(secondary),
  isRouterOnline: ({ isRouterOnline: isOnline }) =>
    typeof isOnline === 'boolean' ? <OnlineState isOnline={isOnline} /> : '',
  policyCount: ({ policyCount }) => <UseCount amount={policyCount} />,
  configCount: ({ configCount }) => <UseCount amount={configCount} />,
  isEdgeRouter: ({ isEdgeRouter, id }) =>
    typeof isEdgeRouter !== 'boolean' ? (
      ''
    ) : isEdgeRouter ? (
      <a href={consolePath('edge-routers', String(id))}>{texts.cell.edgeRouter}</a>
    ) : (
      texts.cell.transitRouter
    ),
  use: ({ name }) => configTypeUse(name),
  usedBy: ({ usedBy }) => (Array.isArray(usedBy) ? <UsedBy users={usedBy} /> : ''),
  policies: ({ policies }) => (Array.isArray(policies) ? <UsedBy users={policies} /> : ''),
  configType: ({ configType }) => memberText(configType, 'name'),
  typeId: ({ typeId }) =>
    typeof typeId === 'string' ? (texts.posture.types[typeId] ?? visibleText(typeId)) : '',
  requires: (row) => clipped(visibleText(postureRequirement(row))),
  method: ({ method, username }) =>
    typeof method === 'string' ? (
      <>
        {methodName(method)}{' '}
        {typeof username === 'string' ? <span class="faint">{visibleText(username)}</span> : null}
      </>
    ) : (
      ''
    ),
  certificateEnd: ({ certPem }) => {
    const end = certificateEnd(certPem)
    return end === null ? '' : <ExpiryCell row={{ expiresAt: end }} />
  },
  fingerprint: ({ fingerprint }) =>
    typeof fingerprint === 'string' && fingerprint !== '' ? (
      <CopyId id={fingerprint} charactersMax={FINGERPRINT_CHARACTERS} />
    ) : (
      ''
    ),
  clientAddress: ({ clientAddress }) => addressCell(clientAddress),
  hostAddress: ({ hostAddress }) => addressCell(hostAddress),
  configValue: ({ configValue }) => addressCell(configValue),
  maxIdleTimeMillis: ({ maxIdleTimeMillis: ms }) =>
    typeof ms === 'number' && ms > 0 ? texts.duration(ms / 1000) : '',
  issuer: ({ issuer }) =>
    typeof issuer === 'string' ? <span class="clip long">{visibleText(issuer)}</span> : '',
  semantic: ({ semantic }) =>
    typeof semantic === 'string' ? (texts.cell.semantics[semantic] ?? semantic) : '',
  type: ({ type }) => (typeof type === 'string' ? (texts.cell.rights[type] ?? type) : ''),
}

function clipped(text: string): ComponentChildren {
  return text === '' ? '' : <span class="clip">{text}</span>
}

/** An address, or several; a line may end before a port, but not within it. */
function addressCell(text: unknown): ComponentChildren {
  if (typeof text !== 'string') return ''
  const parts = visibleText(text).split(/(:[\d,-]+\b)/)
  return (
    <span class="clip">
      {parts.map((part, at) => (at % 2 === 0 ? part : <span class="port">{part}</span>))}
    </span>
  )
}

/** The addresses at which an edge router takes clients; '' while it is offline. */
export function clientAddresses({ supportedProtocols }: RowCell['row']): string {
  if (!isObject(supportedProtocols)) return ''
  return Object.values(supportedProtocols).map(String).map(visibleText).join(', ')
}

/** The purpose of a config type of OpenZiti; '' for other types. */
export function configTypeUse(name: unknown): string {
  const uses: Readonly<Record<string, string>> = texts.configTypes
  return typeof name === 'string' && Object.hasOwn(uses, name) ? (uses[name] ?? '') : ''
}

/** How many records use this one. */
function UseCount({ amount }: { readonly amount: unknown }) {
  if (typeof amount !== 'number') return <span class="faint">–</span>
  if (amount === 0) return <span class="faint">{texts.cell.notUsed}</span>
  return <>{amount.toLocaleString('en')}</>
}

/** Enough characters to compare two fingerprints by sight. */
const FINGERPRINT_CHARACTERS = 16
const HOUR_MS = 3_600_000

function methodName(method: string): string {
  const methods: Readonly<Record<string, string>> = texts.list.methods
  const name = methods[method] ?? method
  return name.slice(0, 1).toUpperCase() + name.slice(1)
}

/**
 * When a record expires; gray if it has expired, and with a warning color if it expires within a
 * day. For a token, which nearly always does, the color begins an hour before.
 */
function ExpiryCell({ row }: { readonly row: RowCell['row'] }) {
  const ms = Date.parse(String(row['expiresAt']))
  if (Number.isNaN(ms)) return <span class="faint">–</span>
  const left = ms - Date.now()
  if (left <= 0 && typeof row['isEnded'] === 'boolean') {
    return <PolicyExpiryState row={{ ...row, isEnded: true }} />
  }
  const time = <Time at={String(row['expiresAt'])} />
  if (left <= 0) return <StateBadge state="expired">{time}</StateBadge>
  return left > ('token' in row ? HOUR_MS : DAY_MS) ? (
    time
  ) : (
    <Badge tone="warn" icon="clock">
      {time}
    </Badge>
  )
}

/** The records that use a record, such as the services that use a config. */
function UsedBy({ users }: { readonly users: readonly unknown[] }) {
  if (users.length === 0) return <span class="faint">{texts.cell.notUsed}</span>
  const shown = users.filter(isObject).slice(0, SHOWN_ITEMS)
  return (
    <>
      {shown.map((user, at) => (
        <span key={String(user['id'])}>
          {at === 0 ? '' : ', '}
          <Reference value={user} />
        </span>
      ))}
      {users.length > shown.length ? (
        <span class="faint tiny"> {texts.cell.more(users.length - shown.length)}</span>
      ) : null}
    </>
  )
}

/** The requirements of a posture check, each in a few words; [] if its type alone says it. */
export function postureRequirements(row: RowCell['row']): readonly string[] {
  const { operatingSystems, domains, macAddresses, process, processes, timeoutSeconds } = row
  if (Array.isArray(operatingSystems)) {
    return operatingSystems.filter(isObject).map(({ type, versions }) => {
      const ranges = Array.isArray(versions) ? versions.join(' or ') : ''
      return `${String(type)} ${ranges.replaceAll('>=', '≥').replaceAll('<=', '≤')}`.trim()
    })
  }
  if (Array.isArray(domains)) return domains.map(String)
  if (Array.isArray(macAddresses)) {
    return macAddresses.map(
      (one) =>
        String(one)
          .match(/[\da-f]{2}/gi)
          ?.join(':') ?? String(one),
    )
  }
  if (Array.isArray(processes) || isObject(process)) {
    const all = Array.isArray(processes) ? processes : [process]
    return all.map((one) => memberText(one, 'path'))
  }
  return typeof timeoutSeconds === 'number' ? [texts.cell.codeEvery(timeoutSeconds)] : []
}

/** The requirements of a posture check in one line. */
export function postureRequirement(row: RowCell['row']): string {
  return postureRequirements(row).join(', ')
}

/** The methods of log-in that an authentication policy allows, in words. */
export function allowedMethods(primary: unknown): string {
  const { logInRules } = texts
  if (!isObject(primary)) return ''
  const allowed = (['cert', 'updb', 'extJwt'] as const).filter((method) => {
    const rules = primary[method]
    return isObject(rules) && rules['allowed'] === true
  })
  return allowed.map((method) => logInRules[method]).join(', ')
}

/** The additional requirements of an authentication policy, in words; '' for none. */
export function requiredInAddition(secondary: unknown): string {
  if (!isObject(secondary)) return ''
  const { cell } = texts
  const parts = [
    secondary['requireTotp'] === true ? cell.totp : '',
    typeof secondary['requireExtJwtSigner'] === 'string' ? cell.secondSigner : '',
  ]
  return parts.filter((part) => part !== '').join(', ')
}

/** Whether the cell of a record shows no value. */
export function isEmptyCell(row: RowCell['row'], name: string): boolean {
  const draw = rowCells[name]
  if (draw !== undefined) return draw(row) === ''
  const value = row[name]
  return value === null || value === undefined || value === '' || isEmptyList(value)
}

function isEmptyList(value: unknown): boolean {
  return Array.isArray(value) && value.length === 0
}

/** The value of a field of a record in a list. */
export function FieldCell({ row, name, onAttribute }: RowCell) {
  const draw = rowCells[name]
  if (draw !== undefined) {
    const drawn = draw(row)
    return drawn === '' ? <span class="faint">–</span> : <>{drawn}</>
  }
  const display = row[`${name}Display`]
  const value = Array.isArray(display) && display.length > 0 ? display : row[name]
  const ends = name === 'roleAttributes' ? row['roleAttributesExpireAt'] : undefined
  const more = onAttribute === undefined ? {} : { onAttribute }
  return <RecordCell name={name} value={value} ends={ends} {...more} />
}

/** Shows when a policy will end, or that the policy has ended. */
export function PolicyExpiryState(props: {
  readonly row: RowCell['row']
  readonly isBadge?: boolean
}) {
  const { row, isBadge = false } = props
  const end = expiryText(row['expiresAt'])
  if (end === null) return <span class="faint">–</span>
  return row['isEnded'] === true || isBadge ? (
    <Badge tone={row['isEnded'] === true ? 'warn' : 'accent'} icon="clock">
      {end}
    </Badge>
  ) : (
    <time dateTime={String(row['expiresAt'])} title={String(row['expiresAt'])}>
      {end}
    </time>
  )
}

const SEEN_NOW_MS = 120_000

/**
 * Shows when an identity was last seen. That time is accurate only to the minute, so a time within
 * the last two minutes is shown as now.
 */
export function LastSeen({ at }: { readonly at: unknown }) {
  if (typeof at !== 'string') return <Time at={null} />
  return Date.now() - Date.parse(at) < SEEN_NOW_MS ? <>{texts.time.now}</> : <Time at={at} />
}

/**
 * Program and operating system of an identity's client; '' before the identity's first log-in.
 */
export function clientDescription(row: RowCell['row']): string {
  const { sdkInfo, envInfo } = row
  const program = [memberText(sdkInfo, 'type'), memberText(sdkInfo, 'version')]
  const parts = [program.filter((part) => part !== '').join(' '), systemName(envInfo)]
  return parts.filter((part) => part !== '').join(' · ')
}

/** The operating system that a client reported, by the name that people use; '' if unknown. */
export function systemName(envInfo: unknown): string {
  const os = memberText(envInfo, 'os')
  const names: Readonly<Record<string, string>> = texts.systems
  return Object.hasOwn(names, os) ? (names[os] ?? os) : os
}

function memberText(value: unknown, name: string): string {
  return isObject(value) && typeof value[name] === 'string' ? visibleText(value[name]) : ''
}

/** Shows the value of a record in a table, always as text. */
export function RecordCell({
  name,
  value,
  ends,
  onAttribute,
}: {
  readonly name: string
  readonly value: unknown
  /** For each role attribute, the time at which it ends. */
  readonly ends?: unknown
  readonly onAttribute?: (attribute: string) => void
}) {
  if (value === null || value === undefined || value === '') return <span class="faint">–</span>
  const state = states[name]
  if (typeof value === 'boolean' && state !== undefined) return <State isOn={value} {...state} />
  if (typeof value === 'boolean') return <>{value ? texts.cell.yes : texts.cell.no}</>
  if (Array.isArray(value)) {
    return <Items name={name} items={value} ends={ends} onAttribute={onAttribute ?? null} />
  }
  if (isObject(value)) return <Reference value={value} />
  const text = typeof value === 'number' ? value.toLocaleString('en') : String(value)
  if (TIME.test(text)) return <Time at={text} />
  return <span class="clip">{visibleText(text)}</span>
}

function State(props: {
  readonly isOn: boolean
  readonly on: readonly ['good' | 'warn' | 'plain', string]
  readonly off: string
}) {
  const { isOn, on, off } = props
  if (isOn) return <Badge tone={on[0]}>{on[1]}</Badge>
  return off === '' ? <span class="faint">–</span> : <Badge icon="minus">{off}</Badge>
}

function Items(props: {
  readonly name: string
  readonly items: readonly unknown[]
  readonly ends: unknown
  readonly onAttribute: ((attribute: string) => void) | null
}) {
  const { name, items, ends, onAttribute } = props
  if (items.length === 0) return <span class="faint">–</span>
  const isAttribute = name === 'roleAttributes'
  const shown = items.slice(0, SHOWN_ITEMS)
  return (
    <span class="chips">
      {shown.map((item, at) => (
        <Item
          key={at}
          text={
            isAttribute ? visibleText(attributeWithExpiryText(String(item), ends)) : itemText(item)
          }
          hasEnd={isObject(ends) && typeof ends[String(item)] === 'string'}
          onClick={isAttribute && onAttribute !== null ? () => onAttribute(String(item)) : null}
        />
      ))}
      {items.length > shown.length ? (
        <span class="faint tiny">{texts.cell.more(items.length - shown.length)}</span>
      ) : null}
    </span>
  )
}

function Item(props: {
  readonly text: string
  /** True: the text also says when the attribute ends, and is not cut. */
  readonly hasEnd: boolean
  readonly onClick: (() => void) | null
}) {
  const { text, hasEnd, onClick } = props
  const kind = hasEnd ? 'chip with-end' : 'chip'
  if (onClick === null) {
    return (
      <span class={kind}>
        <span>{text}</span>
      </span>
    )
  }
  return (
    <button type="button" class={kind} title={texts.list.byAttribute(text)} onClick={onClick}>
      {hasEnd ? <Icon name="clock" size={12} /> : null}
      <span>{text}</span>
    </button>
  )
}

function itemText(item: unknown): string {
  const text = isObject(item) ? (item['name'] ?? item['id'] ?? '') : item
  return visibleText(String(text))
}

function Reference({ value }: { readonly value: Readonly<Record<string, unknown>> }) {
  const { entity, id, name } = value
  if (typeof entity !== 'string' || typeof id !== 'string') {
    return <span class="clip mono">{JSON.stringify(value)}</span>
  }
  const text = visibleText(typeof name === 'string' && name !== '' ? name : id)
  if (findKindAtPath(entity) === null) return <>{text}</>
  return <a href={consolePath(entity, id)}>{text}</a>
}
