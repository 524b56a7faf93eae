import type { ComponentChildren } from 'preact'

import { consolePath } from '../../app/navigation.ts'
import { visibleBlock, visibleText } from '../../app/visible-text.ts'
import { CopyText } from '../../controls/copy.tsx'
import { Badge } from '../../controls/status.tsx'
import { expiryText } from '../../controls/expiry-input.tsx'
import { certificateEnd, certificateSubject } from './certificate-end.ts'
import { Time } from '../../controls/time.tsx'
import { texts } from '../../texts.ts'
import {
  clientAddresses,
  configTypeUse,
  FieldCell,
  postureRequirements,
  RecordCell,
  systemName,
} from './record-cell.tsx'
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
  'config-types': ['use'],
  'posture-checks': ['requires', 'typeId', 'roleAttributes', 'policies'],
  'edge-router-policies': ['identityRoles', 'edgeRouterRoles', 'semantic'],
  'service-edge-router-policies': ['serviceRoles', 'edgeRouterRoles', 'semantic'],
  'auth-policies': ['primary', 'secondary', 'identityCount'],
  authenticators: ['identity', 'certificateEnd', 'subject', 'method', 'fingerprint'],
  enrollments: ['identity', 'edgeRouter', 'transitRouter', 'expiresAt', 'method', 'ca'],
  cas: [
    'subject',
    'certificateEnd',
    'identityRoles',
    'isAuthEnabled',
    'isAutoCaEnrollmentEnabled',
    'isOttCaEnrollmentEnabled',
    'fingerprint',
  ],
  terminators: ['service', 'router', 'host', 'binding', 'address', 'precedence', 'cost'],
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

/** The record with the facts that its own fields contain only in another form. */
function withDerivedFacts(record: RecordRow): RecordRow {
  return {
    ...record,
    requires: postureRequirements(record).join('\n'),
    use: configTypeUse(record['name']),
    certificateEnd: certificateEnd(record['certPem']),
    subject: certificateSubject(record['certPem']),
    // The address of a terminator that an identity hosts is the ID of the terminator.
    ...(record['address'] === record.id ? { address: '' } : {}),
  }
}

/**
 * Facts that take the whole width of the panel, the width of two facts, or the whole width of a
 * narrow window.
 */
const factWidths: Readonly<Record<string, string>> = {
  requires: 'whole',
  issuer: 'long',
  jwksEndpoint: 'long',
  clientAddress: 'address',
  hostAddress: 'address',
}

/** The most important values of a record, in words. */
export function RecordOverview(props: { readonly kind: ConsoleKind; readonly record: RecordRow }) {
  const { kind } = props
  const record = withDerivedFacts(props.record)
  const names = (facts[kind.path] ?? kind.columns).filter(
    (name) => name in record && isWorthShowing(record, name),
  )
  const sentence = policySentence(kind.path, record, expiryText(record['expiresAt']))
  const tags = isObject(record['tags']) ? Object.entries(record['tags']) : []
  const dataTexts = kind.path === 'configs' ? dataFacts(record['data']) : []
  const hasFacts =
    names.length + dataTexts.length + tags.length > 0 || kind.path === 'auth-policies'
  const json = jsonOf(kind, record)
  if (!hasFacts && sentence === '' && json === null) return null
  return (
    <section class="panel" aria-labelledby="facts">
      <div class="panel-head">
        <h2 id="facts">{texts.record.facts}</h2>
      </div>
      {sentence === '' ? null : <p class="panel-body sentence">{sentence}</p>}
      {hasFacts ? (
        <dl class="panel-body facts wide">
          {names.map((name) => (
            <Fact key={name} label={labelOf(kind, name)} width={factWidths[name] ?? ''}>
              <FactValue kind={kind} record={record} name={name} />
            </Fact>
          ))}
          {kind.path === 'auth-policies' ? <LogInFacts record={record} /> : null}
          {dataTexts.map(([name, text]) => (
            <Fact key={`data ${name}`} label={fieldLabel(name)}>
              {visibleText(text)}
            </Fact>
          ))}
          {tags.map(([name, value]) => (
            <Fact key={`tag ${name}`} label={texts.record.tag(visibleText(name))}>
              {visibleText(typeof value === 'string' ? value : JSON.stringify(value))}
            </Fact>
          ))}
        </dl>
      ) : null}
      {json === null ? null : (
        <details class="group-panel" open={!json.isShownAsFacts}>
          <summary>{json.label}</summary>
          <div class="panel-body">
            <CopyText label={json.label} text={JSON.stringify(json.value, null, 2)} />
          </div>
        </details>
      )}
    </section>
  )
}

/** The part of a record that is JSON: the data of a config, or the schema of a config type. */
function jsonOf({ path }: ConsoleKind, { data, schema }: RecordRow) {
  if (path === 'configs') {
    const members = isObject(data) ? Object.keys(data).length : 1
    const isShownAsFacts = dataFacts(data).length === members
    return { label: texts.record.data, value: data, isShownAsFacts }
  }
  if (path !== 'config-types' || !isObject(schema)) return null
  return { label: texts.record.schema, value: schema, isShownAsFacts: false }
}

/** Values that nearly all records have; a fact about them would say nothing. */
const usualValues: Readonly<Record<string, unknown>> = {
  terminatorStrategy: 'smartrouting',
  maxIdleTimeMillis: 0,
  cost: 0,
  noTraversal: false,
  precedence: 'default',
}

/** Whether a field has a value, other than the one that nearly all records have. */
function isWorthShowing(record: RecordRow, name: string): boolean {
  if (name === 'roleAttributes' && expiredAttributes(record).length > 0) return true
  // An online router without addresses takes no clients.
  if (name === 'supportedProtocols' && record['isOnline'] === true) return true
  // That no policy selects a posture check is worth knowing.
  if (name === 'policies') return Array.isArray(record[name])
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
  const known = factNames[`${kind.path}.${name}`] ?? factNames[name] ?? texts.list.columns[name]
  return known ?? kind.fields[name]?.label ?? fieldLabel(name.replace(/Id$/, ''))
}

function Fact(props: {
  readonly label: string
  readonly width?: string
  readonly children: ComponentChildren
}) {
  return (
    <div class={`fact ${props.width ?? ''}`}>
      <dt>{props.label}</dt>
      <dd>{props.children}</dd>
    </div>
  )
}

function FactValue(props: {
  readonly kind: ConsoleKind
  readonly record: RecordRow
  readonly name: string
}) {
  const { kind, record, name } = props
  const value = record[name]
  const ended = name === 'roleAttributes' ? expiredAttributes(record) : []
  const areAttributes = name === (kind.path === 'cas' ? 'identityRoles' : 'roleAttributes')
  if (areAttributes && Array.isArray(value) && value.length + ended.length > 0) {
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
  if (name === 'requires') return <>{visibleBlock(String(value))}</>
  if (name === 'envInfo') return <>{environmentText(value) || '–'}</>
  if (name === 'supportedProtocols') {
    return <>{clientAddresses(record) || texts.record.noClients}</>
  }
  // The sentence about a policy and the state beside its name say how long that is from now.
  if (name === 'expiresAt' && 'serviceRoles' in record) return <Time at={String(value)} isExact />
  const isPlainList = Array.isArray(value) && record[`${name}Display`] === undefined
  if (isPlainList && name !== 'policies') {
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
            : ids.map((id, at) => (
                <span key={id}>
                  {at === 0 ? '' : ', '}
                  <a href={consolePath(SIGNERS, id)}>
                    {visibleText(names.get(`${SIGNERS}/${id}`) || id)}
                  </a>
                </span>
              ))}
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
  const parts = ['osVersion', 'arch', 'hostname'].map((name) => value[name])
  return [systemName(value), ...parts]
    .filter((part): part is string => typeof part === 'string' && part !== '')
    .map(visibleText)
    .join(' · ')
}
