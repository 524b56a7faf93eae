import type { ComponentChildren } from 'preact'

import type { BadgeTone } from '../../controls/badge-tone.ts'
import { Badge } from '../../controls/status.tsx'
import type { IconName } from '../../controls/icon-paths.ts'
import { texts } from '../../texts.ts'
import { isObject } from './json-values.ts'

/** A state in words, with its color. */
export interface ShownState {
  readonly tone: BadgeTone
  readonly word: string
  readonly icon?: IconName
}

const { cell, home, live } = texts

/** The states of records. A state has the same word, color and icon on all pages. */
export const recordStates = {
  online: { tone: 'good', word: cell.online },
  loggedIn: { tone: 'good', word: cell.loggedIn },
  offline: { tone: 'bad', word: cell.offline },
  /** A disconnected identity; not a fault, because a person may have closed the laptop. */
  away: { tone: 'plain', word: cell.offline, icon: 'minus' },
  notEnrolled: { tone: 'plain', word: cell.notEnrolled, icon: 'key' },
  disabled: { tone: 'plain', word: cell.disabled, icon: 'ban' },
  enabled: { tone: 'good', word: cell.enabled },
  verified: { tone: 'good', word: cell.verified },
  unverified: { tone: 'warn', word: cell.unverified },
  noHost: { tone: 'warn', word: cell.noHost },
  hostsOffline: { tone: 'bad', word: cell.hostsOffline },
  up: { tone: 'good', word: live.linkStates.up },
  down: { tone: 'bad', word: live.linkStates.down },
  locked: { tone: 'warn', word: home.words.locked },
  expiresSoon: { tone: 'warn', word: home.words.soon },
  expired: { tone: 'plain', word: home.words.expired, icon: 'minus' },
  unused: { tone: 'plain', word: home.words.unused },
} as const satisfies Readonly<Record<string, ShownState>>

export type RecordStateName = keyof typeof recordStates

export function StateBadge(props: {
  readonly state: RecordStateName
  /**
   * Content after the word of the state, such as the time since which the record has this state.
   */
  readonly children?: ComponentChildren
}) {
  const { state, children } = props
  const { tone, word, icon }: ShownState = recordStates[state]
  return (
    <Badge tone={tone} {...(icon === undefined ? {} : { icon })}>
      {word}
      {children === undefined ? null : <> {children}</>}
    </Badge>
  )
}

type Row = Readonly<Record<string, unknown>>

export function identityState(row: Row): RecordStateName {
  if (row['disabled'] === true) return 'disabled'
  if (row['hasEdgeRouterConnection'] === true) return 'online'
  if (row['hasApiSession'] === true) return 'loggedIn'
  const { authenticators } = row
  const hasNone = isObject(authenticators) && Object.keys(authenticators).length === 0
  return hasNone ? 'notEnrolled' : 'away'
}

/** The state of a router of any API: one without a certificate counts as not enrolled. */
export function routerState(row: Row): RecordStateName {
  if (row['disabled'] === true) return 'disabled'
  if (row['isOnline'] === true || row['connected'] === true) return 'online'
  return row['isVerified'] === false || row['fingerprint'] === null ? 'notEnrolled' : 'offline'
}

export function RouterState({ row }: { readonly row: Row }) {
  return <StateBadge state={routerState(row)} />
}

export function IdentityState({ row }: { readonly row: Row }) {
  return <StateBadge state={identityState(row)} />
}

/** The state of a record of any kind, from its own fields; null: its kind has none. */
export function recordState(path: string, row: Row): RecordStateName | null {
  if (path === 'identities') return identityState(row)
  if (path === 'routers' || path.endsWith('-routers')) return routerState(row)
  if (path === 'cas') return row['isVerified'] === true ? 'verified' : 'unverified'
  if (path === 'terminators' && typeof row['isRouterOnline'] === 'boolean') {
    return row['isRouterOnline'] ? 'online' : 'offline'
  }
  if (typeof row['enabled'] !== 'boolean') return null
  return row['enabled'] ? 'enabled' : 'disabled'
}

/** Whether a terminator or a link can carry circuits. */
export function OnlineState({ isOnline }: { readonly isOnline: boolean }) {
  return <StateBadge state={isOnline ? 'online' : 'offline'} />
}
