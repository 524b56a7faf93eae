import { newCa } from '../../support/authorities.ts'
import type { Administrator } from '../client/support.ts'

/**
 * Creates an object of every kind that a network file can contain, and a reference of every sort.
 */
export async function fillNetwork(person: Administrator): Promise<void> {
  const plant = person.file('plant.pem', (await newCa('plant', Date.now())).certificatePem)
  const signer = person.file('signer.pem', (await newCa('signer', Date.now())).certificatePem)
  const lines = [
    `config-type name=custom schema={"type":"object","properties":{"z":{},"a":{"type":"string"}}}`,
    `config name=web-intercept configType=intercept.v1 data={"protocols":["tcp"],"addresses":["web.test"],"portRanges":[{"low":80,"high":80}]}`,
    `config name=web-special configType=intercept.v1 data={"protocols":["udp"],"addresses":["web.test"],"portRanges":[{"low":80,"high":80}]}`,
    `config name=any configType=custom data={"a":"x","b":[{"d":1,"c":null}]}`,
    `auth-policy name=strict primary.updb.minPasswordLength=12 secondary.requireTotp=true`,
    `external-jwt-signer name=idp enabled=true issuer=https://idp.test audience=net certPem@${signer} enrollAuthPolicy=strict scopes=openid,email enrollToCertEnabled=true`,
    `auth-policy name=by-token primary.extJwt.allowedSigners=idp secondary.requireExtJwtSigner=idp`,
    `ca name=plant certPem@${plant} identityRoles=pumps isAuthEnabled=true isAutoCaEnrollmentEnabled=false isOttCaEnrollmentEnabled=true externalIdClaim.location=COMMON_NAME`,
    `posture-check name=mfa typeId=MFA timeoutSeconds=600 roleAttributes=checked`,
    `posture-check name=mac typeId=MAC macAddresses=00:1B:44:11:3A:B7`,
    `posture-check name=os typeId=OS operatingSystems=[{"type":"Linux","versions":[">=5.0.0"]}]`,
    `posture-check name=process typeId=PROCESS process={"osType":"Linux","path":"/bin/agent"}`,
    `posture-check name=processes typeId=PROCESS_MULTI semantic=AnyOf processes=[{"osType":"Linux","path":"/bin/agent"}]`,
    `edge-router name=gate roleAttributes=public,eu isTunnelerEnabled=true cost=7 appData.site=a ctrlChanListeners={"tls:1.test:1":["a"]}`,
    `edge-router name=door noTraversal=true`,
    `transit-router name=core cost=3 tags.rack=7`,
    `service name=web encryptionRequired=true configs=web-intercept,any roleAttributes=intranet tags.owner=ops`,
    `service name=wiki encryptionRequired=false terminatorStrategy=weighted maxIdleTimeMillis=60000`,
    `identity name=laptop roleAttributes=staff,mobile authPolicy=strict externalId=l-1 serviceHostingCosts.web=4 serviceHostingPrecedences.web=required appData.a=1 permissions=service.read`,
    `identity name=guest`,
    `identity name=visitor roleAttributes=staff,visitors roleAttributesExpireAt.visitors=2099-01-31T19:00:00+01:00`,
    `terminator service=web router=gate binding=transport address=tcp:10.0.0.1:80 cost=2`,
    `terminator service=web router=gate binding=transport address=tcp:10.0.0.1:80`,
    `terminator service=wiki router=core binding=transport address=tcp:10.0.0.2:80 identity=wiki-1`,
    `edge-router-policy name=all semantic=AnyOf identityRoles=#all edgeRouterRoles=@gate,#eu`,
    `service-edge-router-policy name=any semantic=AllOf serviceRoles=#all edgeRouterRoles=#all`,
    `service-policy name=dial-web type=Dial semantic=AnyOf identityRoles=@laptop,@gate,#staff serviceRoles=@web postureCheckRoles=@mac,#checked`,
    `service-policy name=visit type=Dial semantic=AnyOf identityRoles=#visitors serviceRoles=@web --until 2099-01-31T18:00:00Z`,
    `controller-setting controllerId=global oidc.redirectUris=https://console.test/`,
  ]
  for (const line of lines) await person.out('create', ...line.split(' '))
  await person.out('update', 'identity', 'gate', 'roleAttributes=hosts')
  await person.out('update', 'config-type', 'proxy.v1', 'tags.edited=yes')
  await person.out('update', 'identity', 'Default Admin', 'tags.first=true')
  await person.out('update', 'auth-policy', 'Default', 'primary.updb.maxAttempts=5')
  const guest = await idOf(person, 'identity', 'guest')
  await person.cluster.ask('POST', `/identities/${guest}/disable`, { durationMinutes: 0 })
  const laptop = await idOf(person, 'identity', 'laptop')
  await person.cluster.ask('POST', `/identities/${laptop}/service-configs`, [
    {
      serviceId: await idOf(person, 'service', 'web'),
      configId: await idOf(person, 'config', 'web-special'),
    },
  ])
}

/** The ID of a record, by its name, in the cluster of this person. */
export async function idOf(person: Administrator, kind: string, name: string): Promise<string> {
  return (JSON.parse(await person.out('get', kind, name, '-o', 'json')) as { id: string }).id
}
