import { type Command, Option } from 'commander'

import { addContextOption } from '../client/connection-options.ts'
import type { RecordListOptions, ReadOptions } from './read.ts'
import type { ReEnrollOptions } from './re-enroll.ts'
import type { DeleteOptions, RecordWriteOptions } from './write.ts'
import { createIntegerOptionParser } from '../terminal/integer-option.ts'

const KIND = 'kind of record; flotilla kinds lists them'
const outputs = ['table', 'json', 'yaml', 'name'] as const

/** The commands for records. Their code is loaded when one of them runs. */
export function addRecordCommands(program: Command): void {
  addReads(program)
  addCreate(program)
  addUpdate(program)
  addDelete(program)
  addReEnroll(program)
  addExplanations(program)
}

function addReads(program: Command): void {
  withOutput(program.command('get'), 'yaml')
    .argument('<kind>', KIND)
    .argument('[name]', 'name or id')
    .description('show one record')
    .addHelpText(
      'after',
      `
Examples:
  flotilla get service web
  flotilla get identity laptop -o json`,
    )
    .action(async (kind: string, name: string | undefined, options: ReadOptions) => {
      const { getRecord } = await import('./read.ts')
      await getRecord(kind, name, options)
    })
  withOutput(program.command('list'), 'table')
    .argument('<kind>', KIND)
    .option('--filter <text>', 'only matching records, such as: name contains "web"')
    .option('--sort <fields>', 'sort order, such as: name desc')
    .option(
      '--limit <count>',
      'maximum number of records (default: 100)',
      createIntegerOptionParser(1, 100_000),
    )
    .option('--all', 'all records')
    .option('--fields <names>', 'columns or members to show, separated by commas')
    .description('list the records of a kind')
    .addHelpText(
      'after',
      `
Examples:
  flotilla list services
  flotilla list identities --filter 'anyOf(roleAttributes) = "staff"' --sort 'name desc' --all -o name
  flotilla list sp --fields name,type,identityRoles -o json
  flotilla list links --filter 'down = true'
  flotilla list circuits --all`,
    )
    .action(async (kind: string, options: RecordListOptions) => {
      const { listRecords } = await import('./read.ts')
      await listRecords(kind, options)
    })
}

function addCreate(program: Command): void {
  addContextOption(program.command('create'))
    .argument('<kind>', KIND)
    .argument('[field=value...]', 'fields; FIELD@FILE reads a value from a file')
    .option('-f, --file <file>', 'fields in YAML or JSON, or - for standard input')
    .option('--until <time>', 'end of a service policy or enrollment')
    .option('--for <duration>', 'the same, from now, such as 7d, 12h or 90m')
    .description('create a record')
    .addHelpText(
      'after',
      `
References are given by name or id, lists separated by commas or as JSON, members of objects by dots. Secrets are never
taken from the command line: use FIELD@FILE, or FIELD@- for standard input.

Examples:
  flotilla create identity name=laptop roleAttributes=staff,mobile enrollment.ott=true
  flotilla create service name=web encryptionRequired=true configs=web-intercept,web-host tags.owner=ops
  flotilla create service-policy name=dial-web type=Dial semantic=AnyOf identityRoles=#staff serviceRoles=@web
  flotilla create service-policy name=audit type=Dial semantic=AnyOf identityRoles=#auditors serviceRoles=@books --for 7d
  flotilla create authenticator method=updb identity=alice username=alice password@- < password
  flotilla create config -f web-host.yml`,
    )
    .action(async (kind: string, words: string[], options: RecordWriteOptions) => {
      const { createRecord } = await import('./write.ts')
      await createRecord(kind, words, options)
    })
}

function addUpdate(program: Command): void {
  addContextOption(program.command('update'))
    .argument('<kind>', KIND)
    .argument('<name>', 'name or id')
    .argument('[field=value...]', 'fields to change; FIELD@FILE reads a value from a file')
    .option('-f, --file <file>', 'fields in YAML or JSON, or - for standard input')
    .option('--until <time>', 'new end of a service policy')
    .option('--for <duration>', 'the same, from now, such as 7d, 12h or 90m')
    .description('update fields of a record')
    .addHelpText(
      'after',
      `
Fields that are not named stay unchanged; lists are replaced as a whole. A single member, such as tags.owner, leaves the
other members of its object unchanged.

Examples:
  flotilla update service web name=website
  flotilla update identity laptop roleAttributes=staff tags.owner=ops
  flotilla update identity laptop roleAttributes=staff,auditors roleAttributesExpireAt.auditors=7d
  flotilla update service-policy audit expiresAt=null
  flotilla update auth-policy Default primary.updb.minPasswordLength=12`,
    )
    .action(async (kind: string, name: string, words: string[], options: RecordWriteOptions) => {
      const { updateRecord } = await import('./write.ts')
      await updateRecord(kind, name, words, options)
    })
}

function addDelete(program: Command): void {
  addContextOption(program.command('delete'))
    .argument('<kind>', KIND)
    .argument('<name...>', 'names or ids')
    .option('--yes', 'skip the confirmation')
    .option('--force', 'also delete records that others use; implies --yes')
    .description('delete records, after confirmation')
    .addHelpText(
      'after',
      `
The deletion takes a config off the services and routers that list it. The confirmation names them; with --yes, the
command refuses it, and --force deletes the config nevertheless.

Examples:
  flotilla delete services web mail --yes
  flotilla delete config web-host --force`,
    )
    .action(async (kind: string, names: string[], options: DeleteOptions) => {
      const { deleteRecords } = await import('./write.ts')
      await deleteRecords(kind, names, options)
    })
}

function addReEnroll(program: Command): void {
  addContextOption(program.command('re-enroll'))
    .argument('<kind>', 'edge-router, identity or authenticator')
    .argument('<name>', 'name or id')
    .option('--out <file>', 'new file for the enrollment token, mode 0600 (default: print it)')
    .option('--yes', 'skip the confirmation')
    .description('replace a certificate by a new enrollment token')
    .addHelpText(
      'after',
      `
The record keeps its id and everything that policies give to it. Its certificate becomes invalid immediately; the token
lets a router or a device enroll again. Of an identity with several certificates, name the authenticator of one.

Examples:
  flotilla re-enroll edge-router edge1 --out edge1.jwt
  flotilla re-enroll edge-router edge1 --yes > edge1.jwt
  flotilla re-enroll identity laptop --out laptop.jwt`,
    )
    .action(async (kind: string, name: string, options: ReEnrollOptions) => {
      const { reEnrollRecord } = await import('./re-enroll.ts')
      await reEnrollRecord(kind, name, options)
    })
}

function addExplanations(program: Command): void {
  program
    .command('kinds')
    .description('list the kinds of records and the commands for each')
    .option('--json')
    .addHelpText('after', '\nExamples:\n  flotilla kinds')
    .action(async (options: { json?: boolean }) => {
      const { printKinds } = await import('./explain.ts')
      printKinds(options)
    })
  program
    .command('explain')
    .argument('<kind>', KIND)
    .option('--json')
    .description('list the fields of a kind')
    .addHelpText('after', '\nExamples:\n  flotilla explain service-policy')
    .action(async (kind: string, options: { json?: boolean }) => {
      const { explainKind } = await import('./explain.ts')
      explainKind(kind, options)
    })
}

function withOutput(command: Command, usual: (typeof outputs)[number]): Command {
  return addContextOption(command).addOption(
    new Option('-o, --output <format>', `output format (default: ${usual})`).choices(outputs),
  )
}
