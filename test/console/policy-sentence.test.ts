import { expect, test } from 'vitest'

import { policySentence } from '../../src/console/pages/records/policy-sentence.ts'

// Goal: the page of a policy describes in one sentence the access that the policy grants.

const policy = {
  id: 'p',
  type: 'Dial',
  semantic: 'AnyOf',
  identityRoles: ['@i1', '#finance'],
  identityRolesDisplay: [{ role: '@i1', name: '@Grace Hopper' }],
  serviceRoles: ['@s1'],
  serviceRolesDisplay: [{ role: '@s1', name: '@payroll' }],
  postureCheckRoles: ['#strict'],
}

test('the sentence about a service policy names identities, services and posture checks', () => {
  expect(policySentence('service-policies', policy, null)).toBe(
    'Grace Hopper and #finance may use payroll, if the device passes #strict.',
  )
})

test('the sentence about a service policy says when it ends, or that it has ended', () => {
  const own = { ...policy, postureCheckRoles: [], isEnded: false }
  expect(policySentence('service-policies', own, 'Ends in 2 days')).toMatch(
    /may use payroll\. It ends in 2 days\.$/,
  )
  const ended = { ...own, isEnded: true }
  expect(policySentence('service-policies', ended, 'Ended 2 days ago')).toMatch(
    /may no longer use payroll\. It ended 2 days ago\.$/,
  )
})

test('the sentence about a policy says whether one attribute suffices, or all are needed', () => {
  const roles = { identityRoles: ['#eu', '#staff'], edgeRouterRoles: ['#all'] }
  const text = (semantic: string) =>
    policySentence('edge-router-policies', { id: 'p', semantic, ...roles }, null)
  expect(text('AnyOf')).toBe('#eu and #staff may connect to all edge routers.')
  expect(text('AllOf')).toBe(
    'Identities with all of #eu and #staff may connect to all edge routers.',
  )
})

test('the sentence about a policy without roles says that it selects nothing', () => {
  const empty = { id: 'p', semantic: 'AnyOf', serviceRoles: [], edgeRouterRoles: [] }
  expect(policySentence('service-edge-router-policies', empty, null)).toBe(
    'It selects no service, so it grants nothing.',
  )
  expect(policySentence('configs', empty, null)).toBe('')
})

test('the sentence about a policy counts names after the first few', () => {
  const identityRoles = ['#a', '#b', '#c', '#d', '#e', '#f']
  expect(
    policySentence('service-policies', { ...policy, identityRoles, postureCheckRoles: [] }, null),
  ).toBe('#a, #b, #c, and 3 more may use payroll.')
})
