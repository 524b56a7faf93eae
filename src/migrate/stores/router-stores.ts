/**
 * Routers and terminators. Source: ziti 804f55abb, controller/db/router_store.go:30-121,
 * edge_router_store.go:31-39, transit_router_store.go:112-134, terminator_store.go:30-186.
 */
import type { Json } from '../../lib/text/canonical-json.ts'
import { precedences } from '../../entities/parts/terminator-fields.ts'
import { normalizeHost, isLoopback, normalizedHosts } from '../../pki/authority/router-names.ts'
import { choiceOrFirst, type Conversion, type StoreTable } from './conversion.ts'
import { baseRows, migratedUnchanged, converted, dropped, linkRow } from './field-rows.ts'
import {
  adoptableFingerprintOf,
  type CertificateText,
  certificateTextOf,
  nextCertificateOf,
  noteIssuer,
} from './identity-stores.ts'
import type { StoredRecord } from './stored-record.ts'

const REPORTED = 'the router reports it again'

export const routers: StoreTable = {
  store: 'routers',
  kind: 'router',
  why: '',
  rows: {
    ...baseRows,
    name: migratedUnchanged('text'),
    fingerprint: converted('text', 'computed from certPem'),
    cost: migratedUnchanged('int32'),
    noTraversal: migratedUnchanged('boolean'),
    disabled: migratedUnchanged('boolean'),
    ctrlChanListeners: migratedUnchanged('map', { since: '2.0' }),
    interfaces: dropped('map', REPORTED),
    configs: migratedUnchanged('texts', { since: '2.1' }),
    terminators: linkRow,
    edge: migratedUnchanged('section', {
      fields: {
        certPem: migratedUnchanged('text'),
        isVerified: migratedUnchanged('boolean'),
        isTunnelerEnabled: migratedUnchanged('boolean'),
        roleAttributes: migratedUnchanged('texts'),
        appData: migratedUnchanged('map'),
        unverifiedCertPem: migratedUnchanged('text'),
        unverifiedFingerprint: converted('text', 'computed from unverifiedCertPem'),
        capabilitiesMask: dropped('int64', REPORTED, { since: '2.1' }),
        version: dropped('map', REPORTED, { since: '2.1' }),
        edgeRouterPolicies: linkRow,
        serviceEdgeRouterPolicies: linkRow,
        enrollments: linkRow,
        identities: linkRow,
        services: linkRow,
      },
    }),
    transitRouter: migratedUnchanged('section', {
      fields: {
        isVerified: migratedUnchanged('boolean'),
        unverifiedCertPem: migratedUnchanged('text'),
        unverifiedFingerprint: converted('text', 'computed from unverifiedCertPem'),
        enrollments: linkRow,
      },
    }),
  },
  convert: (record, conversion) => {
    const edge = record.section('edge')
    const transit = record.section('transitRouter')
    const leaf = leafOf(record, edge, conversion)
    if (leaf !== null) noteIssuer(record, leaf.certificate, conversion)
    const renewing = edge ?? transit
    const next = renewing === null ? null : nextCertificateOf(renewing)
    const names = leaf === null ? [] : normalizedHosts(leaf.certificate.names)
    conversion.put('router', record, {
      name: record.text('name') ?? '',
      cost: record.integer('cost'),
      noTraversal: record.flag('noTraversal'),
      disabled: record.flag('disabled'),
      ctrlChanListeners: record.map('ctrlChanListeners'),
      configs: record.texts('configs'),
      isEdge: edge !== null,
      isTransit: transit !== null,
      isVerified: edge?.flag('isVerified') ?? transit?.flag('isVerified') ?? true,
      isTunnelerEnabled: edge?.flag('isTunnelerEnabled') ?? false,
      roleAttributes: edge?.texts('roleAttributes') ?? [],
      appData: edge?.map('appData') ?? {},
      ...credentialOf(record, leaf),
      ...(next === null ? {} : { nextCertPem: next.pem, nextFingerprint: next.certificate.sha1 }),
      certificateNames: names,
      allowedNames: allowedNamesOf(record, names, conversion),
    })
  },
}

/** The router's client certificate. OpenZiti stores it only for edge routers. */
function leafOf(
  record: StoredRecord,
  edge: StoredRecord | null,
  { routerCertificates }: Conversion,
): CertificateText | null {
  const given = routerCertificates.get(record.id) ?? null
  const stored = edge?.text('certPem') || null
  const sha1 = record.text('fingerprint')?.toLowerCase() ?? ''
  const pem = stored ?? given
  const leaf = pem === null ? null : certificateTextOf(record, 'certPem', pem)
  if (leaf === null) return null
  if (sha1 === '' || sha1 === leaf.certificate.sha1) return leaf
  const reason =
    stored === null
      ? 'the certificate of --router-cert is not the one of this router'
      : 'its SHA-1 was not that of certPem'
  record.note(stored === null ? 'decide' : 'changed', 'fingerprint', reason)
  return stored === null ? null : leaf
}

/**
 * Fields that identify the router. Without its certificate, it is identified by the SHA-1 until its
 * first connection.
 */
function credentialOf(record: StoredRecord, leaf: CertificateText | null) {
  if (leaf !== null) return { fingerprint: leaf.certificate.sha1, certPem: leaf.pem }
  const fingerprint = record.text('fingerprint') || null
  if (fingerprint === null) return { fingerprint }
  const adoptable = adoptableFingerprintOf(fingerprint)
  if (adoptable === null) {
    const reason = 'it is no SHA-1 of a certificate, so the router cannot connect; enroll it again'
    record.note('decide', 'fingerprint', reason)
    return { fingerprint }
  }
  record.note('changed', 'certPem', `the database has only its SHA-1; ${ADOPTED}`)
  return { fingerprint: adoptable, adoptableFingerprint: adoptable }
}

const ADOPTED = 'the first connection with the certificate stores it'

/**
 * Hosts that the router's next server certificate may contain. No record contains the names of the
 * server certificate, but the client certificate has the same names; they stay allowed, so that the
 * next renewal keeps them.
 */
function allowedNamesOf(
  record: StoredRecord,
  names: readonly string[],
  { controllerHosts }: Conversion,
): string[] {
  const allowed = names.filter((name) => !isLoopback(normalizeHost(name)))
  for (const name of allowed.filter((one) => controllerHosts.has(one))) {
    const reason = `its certificate names ${name}, the host of a controller; remove the name from allowedNames unless both run there`
    record.note('decide', 'allowedNames', reason)
  }
  return allowed
}

export const terminators: StoreTable = {
  store: 'terminators',
  kind: 'terminator',
  why: '',
  rows: {
    ...baseRows,
    service: migratedUnchanged('text'),
    router: migratedUnchanged('text'),
    binding: migratedUnchanged('text'),
    address: migratedUnchanged('text'),
    instanceId: migratedUnchanged('text'),
    instanceSecret: converted('bytes', 'to base64'),
    cost: migratedUnchanged('int32'),
    precedence: migratedUnchanged('text'),
    hostId: migratedUnchanged('text'),
    savedPrecedence: dropped('text', 'a health check of the host sets it again'),
    sourceCtrl: migratedUnchanged('text'),
    peerData: converted('bytes by key', 'to base64'),
    isSystem: converted(
      'boolean',
      'terminators that routers made for their clients are left out: the clients bind again',
    ),
  },
  convert: (record, conversion) => {
    const isSystem = record.flag('isSystem')
    if (isSystem && !isOfTunnel(record)) {
      record.note('changed', '', 'its host binds again and gets a new one')
      return
    }
    const serviceId = record.text('service') ?? ''
    const secret = record.bytes('instanceSecret')
    conversion.put('terminator', record, {
      serviceId,
      routerId: record.text('router') ?? '',
      binding: record.text('binding') ?? '',
      address: record.text('address') ?? '',
      cost: record.integer('cost'),
      precedence: choiceOrFirst(record, 'precedence', precedences),
      instanceId: record.text('instanceId') ?? '',
      instanceSecret: secret === null ? '' : Buffer.from(secret).toString('base64'),
      hostId: record.text('hostId') ?? '',
      sourceCtrl: record.text('sourceCtrl') ?? '',
      peerData: peerDataOf(record),
      isFabricOnly: conversion.fabricServices.has(serviceId),
      isSystem,
    })
  },
}

/**
 * Whether a router's tunnel hosts the terminator, which needs no session. Such terminators are
 * migrated, because a router recreates them only 10 s after it has reconnected, and the service
 * would be down until then.
 */
function isOfTunnel(record: StoredRecord): boolean {
  return record.text('binding') === 'tunnel' && record.text('hostId') === record.text('router')
}

/** Header numbers as decimal strings, with their values in base64. */
function peerDataOf(record: StoredRecord): Record<string, string> {
  const found: [string, Json & string][] = []
  for (const [key, value] of record.bytesByKey('peerData')) {
    if (key.length !== 4) {
      record.note('lost', 'peerData', 'a key is no number of a header')
      continue
    }
    const number = Buffer.from(key).readUInt32LE()
    found.push([String(number), Buffer.from(value).toString('base64')])
  }
  return Object.fromEntries(found)
}
