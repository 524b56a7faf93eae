import type { ComponentChildren } from 'preact'

import { consolePath } from '../../app/navigation.ts'
import { visibleText } from '../../app/visible-text.ts'
import { CopyText } from '../../controls/copy.tsx'
import { Badge } from '../../controls/status.tsx'
import { expiryText } from '../../controls/expiry-input.tsx'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import { clientAddresses, RecordCell, FieldCell } from './record-cell.tsx'
import { fieldLabel } from './form-model.ts'
import { portRangeText } from './config-address.ts'
import { isObject } from './json-values.ts'
import type { ConsoleKind } from './kinds.ts'
import type { RecordRow } from './record-data.ts'
import { policySentence } from './policy-sentence.ts'
import { useRecordNames } from './record-names.ts'
import { attributeWithExpiryText, expiredAttributes } from './role-expiry-input.tsx'

/**
 * Fields in the overview, in display order, for kinds for which the list's columns are not enough.
 */
const facts: Readonly<Record<string, readonly string[]>> = {
  identities: [
    'lastSeenAt',
    'typeId',
    'roleAttributes',
    'isAdmin',
    'permissions',
    'authPolicy',
    'externalId',
    'isMfaEnabled',
    'sdkInfo',
    'envInfo',
    'disabledAt',
    'disabledUntil',
  ],
  configs: ['configType'],
  terminators: ['service', 'router', 'binding', 'address', 'precedence', 'cost'],
  'external-jwt-signers': ['issuer', 'audience', 'jwksEndpoint', 'claimsProperty', 'clientId'],
  services: [
    'clientAddress',
    'hostAddress',
    'roleAttributes',
    'encryptionRequired',
    'terminatorStrategy',
    'maxIdleTimeMillis',
  ],
  'edge-routers': [
    'supportedProtocols',
    'roleAttributes',
    'versionInfo',
    'hostname',
    'cost',
    'noTraversal',
    'isTunnelerEnabled',
    'certificateNames',
    'fingerprint',
  ],
}

/** The most important values of a record, in words. */
export function RecordOverview({
  kind,
  record,
}: {
  readonly kind: ConsoleKind
  readonly record: RecordRow
}) {
  const names = (facts[kind.path] ?? kind.columns).filter(
    (name) => name in record && isWorthShowing(record, name),
  )
  const sentence = policySentence(kind.path, record, expiryText(record['expiresAt']))
  const tags = isObject(record['tags']) ? Object.entries(record['tags']) : []
  return (
    <section class="panel" aria-labelledby="facts">
      <div class="panel-head">
        <h2 id="facts">{texts.record.facts}</h2>
      </div>
      {sentence === '' ? null : <p class="panel-body sentence">{sentence}</p>}
      <dl class="panel-body facts wide">
        {names.map((name) => (
          <Fact
            key={name}
            label={labelOf(kind, name)}
            isWide={name === 'issuer' || name === 'jwksEndpoint'}
          >
            <FactValue record={record} name={name} />
          </Fact>
        ))}
        {kind.path === 'auth-policies' ? <LogInFacts record={record} /> : null}
        {kind.path === 'configs'
          ? dataFacts(record['data']).map(([name, text]) => (
              <Fact key={`data ${name}`} label={fieldLabel(name)}>
                {visibleText(text)}
              </Fact>
            ))
          : null}
        {tags.map(([name, value]) => (
          <Fact key={`tag ${name}`} label={texts.record.tag(visibleText(name))}>
            {visibleText(typeof value === 'string' ? value : JSON.stringify(value))}
          </Fact>
        ))}
        <Fact label={texts.record.createdAt}>
          <Time at={String(record['createdAt'] ?? '')} isExact />
        </Fact>
        <Fact label={texts.record.updatedAt}>
          <Time at={String(record['updatedAt'] ?? '')} isExact />
        </Fact>
      </dl>
      {kind.path === 'configs' ? (
        <div class="panel-body record-data">
          <CopyText label={texts.record.data} text={JSON.stringify(record['data'], null, 2)} />
        </div>
      ) : null}
    </section>
  )
}

/** Values that nearly all records have; a fact about them would say nothing. */
const usualValues: Readonly<Record<string, unknown>> = {
  terminatorStrategy: 'smartrouting',
  maxIdleTimeMillis: 0,
  cost: 0,
  noTraversal: false,
}

/** Whether a field has a value, other than the one that nearly all records have. */
function isWorthShowing(record: RecordRow, name: string): boolean {
  if (name === 'roleAttributes' && expiredAttributes(record).length > 0) return true
  // An online router without addresses takes no clients.
  if (name === 'supportedProtocols' && record['isOnline'] === true) return true
  return !isEmpty(record[name]) && record[name] !== usualValues[name]
}

function isEmpty(value: unknown): boolean {
  if (Array.isArray(value)) return value.length === 0
  if (isObject(value)) return Object.values(value).every(isEmpty)
  return value === null || value === undefined || value === ''
}

/** Members of a config's data that fit into a few words, with their values. */
function dataFacts(data: unknown): readonly (readonly [name: string, text: string])[] {
  if (!isObject(data)) return []
  return Object.entries(data).flatMap(([name, value]) => {
    const items = Array.isArray(value) ? value : [value]
    const parts = items.map((item) =>
      isObject(item) ? portRangeText(item) : isEmpty(item) ? null : String(item),
    )
    const known = parts.filter((part) => part !== null)
    return known.length === 0 || known.length < parts.length
      ? []
      : ([[name, known.join(', ')]] as const)
  })
}

function labelOf(kind: ConsoleKind, name: string): string {
  const { factNames } = texts.record
  const known = factNames[name] ?? texts.list.columns[name]
  return known ?? kind.fields[name]?.label ?? fieldLabel(name.replace(/Id$/, ''))
}

function Fact(props: {
  readonly label: string
  /** True: as wide as two facts. */
  readonly isWide?: boolean
  readonly children: ComponentChildren
}) {
  return (
    <div class={props.isWide === true ? 'fact long' : 'fact'}>
      <dt>{props.label}</dt>
      <dd>{props.children}</dd>
    </div>
  )
}

function FactValue({ record, name }: { readonly record: RecordRow; readonly name: string }) {
  const value = record[name]
  const ended = name === 'roleAttributes' ? expiredAttributes(record) : []
  if (name === 'roleAttributes' && Array.isArray(value) && value.length + ended.length > 0) {
    const ends = record['roleAttributesExpireAt']
    return (
      <span class="chips">
        {value.map((one) => (
          <a class="chip" key={String(one)} href={consolePath('attributes', String(one))}>
            <span>{visibleText(attributeWithExpiryText(String(one), ends))}</span>
          </a>
        ))}
        {ended.map((one) => (
          <Badge key={`ended ${one}`} tone="warn">
            {visibleText(attributeWithExpiryText(one, ends))}
          </Badge>
        ))}
      </span>
    )
  }
  if (name === 'envInfo') return <>{environmentText(value) || '–'}</>
  if (name === 'supportedProtocols') {
    return <>{clientAddresses(record) || texts.record.noClients}</>
  }
  // The sentence about a policy and the state beside its name say how long that is from now.
  if (name === 'expiresAt' && 'serviceRoles' in record) return <Time at={String(value)} isExact />
  if (Array.isArray(value) && record[`${name}Display`] === undefined) {
    return <RecordCell name={name} value={value} />
  }
  return <FieldCell row={record} name={name} />
}

/** Rules of an authentication policy for passwords, and the signers whose tokens log in. */
function LogInFacts({ record }: { readonly record: RecordRow }) {
  const { logInRules } = texts
  const primary = isObject(record['primary']) ? record['primary'] : {}
  const { updb, extJwt } = primary as { readonly updb?: unknown; readonly extJwt?: unknown }
  const signers = isObject(extJwt) && extJwt['allowed'] === true ? extJwt['allowedSigners'] : null
  const ids = Array.isArray(signers) ? signers.map(String) : []
  const names = useRecordNames(ids.map((id) => ({ path: SIGNERS, id })))
  return (
    <>
      {isObject(updb) && updb['allowed'] === true ? (
        <>
          <Fact label={logInRules.passwords}>{passwordRulesText(updb)}</Fact>
          <Fact label={logInRules.lockTitle}>
            {logInRules.lock(Number(updb['maxAttempts']), Number(updb['lockoutDurationMinutes']))}
          </Fact>
        </>
      ) : null}
      {Array.isArray(signers) ? (
        <Fact label={logInRules.signersTitle}>
          {ids.length === 0
            ? logInRules.everySigner
            : ids.map((id) => visibleText(names.get(`${SIGNERS}/${id}`) || id)).join(', ')}
        </Fact>
      ) : null}
    </>
  )
}

const SIGNERS = 'external-jwt-signers'

function passwordRulesText(rules: Readonly<Record<string, unknown>>): string {
  const { logInRules } = texts
  const needed = [
    rules['requireMixedCase'] === true ? logInRules.mixedCase : '',
    rules['requireNumberChar'] === true ? logInRules.digit : '',
    rules['requireSpecialChar'] === true ? logInRules.special : '',
  ].filter((one) => one !== '')
  return logInRules.passwordRules(Number(rules['minPasswordLength']), needed)
}

function environmentText(value: unknown): string {
  if (!isObject(value)) return ''
  const parts = ['os', 'osVersion', 'arch', 'hostname'].map((name) => value[name])
  return parts
    .filter((part): part is string => typeof part === 'string' && part !== '')
    .map(visibleText)
    .join(' · ')
}
